#include "config.h"

#include "fix_clocks.h"

#include "temporary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20, HOSTS_TOLD = 1000 };

struct fix_clocks {
    correction *correction;
    const char *directory;
    int fd;
    off_t written, read;
    nl_buffer packed; /* records, each behind its size in 32 bits: to be written, or read and not yet handed out */
    size_t at;
    nl_record *record, *corrected;
};

static void *or_fail(void *memory)
{
    if (memory == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return memory;
}

/* ---- options ---- */

enum { OPTION_FIX_CLOCKS = 0x2000, OPTION_REFERENCE, OPTION_ID, OPTION_MESSAGE };

static const struct argp_option options[] = {
    {"fix-clocks", OPTION_FIX_CLOCKS, NULL, 0,
     "Put the times of all hosts on one base, by what the logs say of their clocks (ClockOffset), and by messages, "
     "which cannot come before they go; tell what was done. DATE.ORIGINAL keeps the time that was logged",
     0},
    {"reference", OPTION_REFERENCE, "HOST", 0,
     "With --fix-clocks: the host whose clock is right (default: the collector that most were compared with)", 0},
    {"id", OPTION_ID, "FIELD,...", 0,
     "With --fix-clocks: the fields that tell messages apart (default: those whose names end in ID, and SEQ)", 0},
    {"message", OPTION_MESSAGE, "SENT:RECEIVED", 0,
     "With --fix-clocks: the events of a message that goes and comes; again for others (default: pairs of names that "
     "differ in such words alone, as Ping.Send and Ping.Receive)",
     0},
    {0},
};

static void add_ids(fix_options *o, char *text)
{
    for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
        o->ids = or_fail(reallocarray(o->ids, o->what.id_count + 1, sizeof *o->ids));
        o->ids[o->what.id_count++] = name;
    }
    o->what.ids = o->ids;
}

static bool add_message(fix_options *o, char *text)
{
    char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0')
        return false;
    *colon = '\0';
    o->messages = or_fail(reallocarray(o->messages, o->what.message_count + 1, sizeof *o->messages));
    o->messages[o->what.message_count++] = (correction_message){text, colon + 1};
    o->what.messages = o->messages;
    return true;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    fix_options *o = state->input;
    switch (key) {
    case OPTION_FIX_CLOCKS:
        o->asked = true;
        return 0;
    case OPTION_REFERENCE:
        o->what.reference = argument;
        return 0;
    case OPTION_ID:
        add_ids(o, argument);
        return 0;
    case OPTION_MESSAGE:
        if (!add_message(o, argument))
            argp_error(state, "--message %s: it takes two events, SENT:RECEIVED", argument);
        return 0;
    case ARGP_KEY_END:
        if (!o->asked && (o->what.reference != NULL || o->what.id_count > 0 || o->what.message_count > 0))
            argp_error(state, "--reference, --id and --message go with --fix-clocks");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp fix_clocks_argp = {.options = options, .parser = parse};

void fix_options_free(fix_options *o)
{
    free(o->ids);
    free(o->messages);
}

/* ---- what is kept meanwhile ---- */

static void flush(fix_clocks *f)
{
    temporary_write(f->fd, f->directory, f->packed.data, f->packed.size);
    f->written += (off_t)f->packed.size;
    f->packed.size = 0;
}

static void keep(fix_clocks *f, const nl_record *record)
{
    uint32_t size = 0;
    size_t start = f->packed.size;
    nl_buffer_append(&f->packed, (const char *)&size, sizeof size);
    if (!nl_record_pack(record, &f->packed))
        program_fail(PROGRAM_PROBLEM, "a record is larger than --fix-clocks can keep");
    size = (uint32_t)(f->packed.size - start - sizeof size);
    memcpy(f->packed.data + start, &size, sizeof size);
    if (f->packed.size >= PIECE)
        flush(f);
}

/* Makes sure that size bytes are there. False at the end. */
static bool fill(fix_clocks *f, size_t size)
{
    size_t left = f->packed.size - f->at;
    if (left >= size)
        return true;
    if (left > 0)
        memmove(f->packed.data, f->packed.data + f->at, left);
    f->packed.size = left;
    f->at = 0;
    off_t rest = f->written - f->read;
    size_t more = size - left > PIECE ? size - left : PIECE;
    more = (off_t)more < rest ? more : (size_t)rest;
    if (left + more < size)
        return false;
    nl_buffer_reserve(&f->packed, more);
    temporary_read(f->fd, f->directory, f->packed.data + left, more, f->read);
    temporary_forget(f->fd, f->read, (off_t)more);
    f->packed.size += more;
    f->read += (off_t)more;
    return true;
}

const nl_record *fix_clocks_next(fix_clocks *f)
{
    uint32_t size;
    if (!fill(f, sizeof size))
        return NULL;
    memcpy(&size, f->packed.data + f->at, sizeof size);
    f->at += sizeof size;
    if (!fill(f, size) || nl_record_unpack(f->record, f->packed.data + f->at, size) != NL_OK)
        program_fail(PROGRAM_PROBLEM, "%s: what was kept there is damaged", f->directory);
    f->at += size;
    return correction_apply(f->correction, f->record, f->corrected) ? f->corrected : f->record;
}

/* ---- telling ---- */

static void tell_host(const correction_host *h)
{
    char error[32] = "unknown";
    if (isfinite(h->error_ns))
        snprintf(error, sizeof error, "%.1f us", h->error_ns / 1e3);
    if (h->is_reference) {
        program_error("clock of %s: the others are set by it", h->name);
    } else if (!h->is_known) {
        program_error("clock of %s: nothing is known of it, its times are left as they are", h->name);
    } else {
        program_error("clock of %s: %+.6f s added (%+.6f to %+.6f), drift %+.2f ppm, error at most %s; %" PRIu64
                      " measurements, %" PRIu64 " messages, %u pieces, %u steps",
                      h->name, h->offset_ns / 1e9, h->least_ns / 1e9, h->most_ns / 1e9, h->drift * 1e6, error,
                      h->measurements, h->messages, h->pieces, h->steps);
        if (h->contradictions > 0)
            program_error("clock of %s: %" PRIu64
                          " messages contradict what was measured, and were left out of account",
                          h->name, h->contradictions);
    }
}

static void tell(const correction *c)
{
    size_t count = correction_host_count(c), unknown = 0;
    for (size_t i = 0; i < count; i++) {
        correction_host h = correction_get_host(c, i);
        if (i < HOSTS_TOLD)
            tell_host(&h);
        unknown += !h.is_known;
    }
    if (count > HOSTS_TOLD)
        program_error("and %zu more clocks", count - HOSTS_TOLD);
    if (count > 1 && unknown == count - 1)
        program_error("no clock could be compared: there are no ClockOffset records (format=nlb to a collector makes "
                      "them), and no messages between hosts (see --message and --id)");
}

/* ---- reading ---- */

static void read_log(fix_clocks *f, input_settings *settings, const char *name, uint64_t *records)
{
    const nl_record *record;
    program_log *log = program_log_open(&settings->reading, name, false, false);
    nl_status status = NL_FAILED;
    while (log != NULL && (status = program_log_next(log, NULL, &record)) == NL_OK) {
        if (settings->format == NL_FORMAT_UNKNOWN)
            settings->format = record->raw_format == NL_FORMAT_BP ? NL_FORMAT_BP : NL_FORMAT_ULM;
        correction_learn(f->correction, record);
        if (settings->where == NULL || nl_filter_matches(settings->where, record))
            keep(f, record);
        if (++*records % PROGRESS_RECORDS == 0) {
            uint64_t done, total;
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, *records);
        }
    }
    settings->failed |= status == NL_FAILED;
    program_log_close(log);
}

fix_clocks *fix_clocks_read(const fix_options *options, input_settings *settings, char **files, size_t count,
                            const char *directory)
{
    fix_clocks *f = or_fail(calloc(1, sizeof *f));
    uint64_t records = 0;
    f->correction = correction_new(&options->what);
    f->directory = directory;
    f->fd = temporary_open(directory);
    f->record = nl_record_new();
    f->corrected = nl_record_new();
    for (size_t i = 0; i < count; i++)
        read_log(f, settings, files[i], &records);
    flush(f);
    program_progress_end();
    correction_solve(f->correction);
    tell(f->correction);
    return f;
}

void fix_clocks_free(fix_clocks *f)
{
    if (f == NULL)
        return;
    correction_free(f->correction);
    nl_buffer_free(&f->packed);
    nl_record_free(f->record);
    nl_record_free(f->corrected);
    close(f->fd);
    free(f);
}
