#include "config.h"

#include "fix_clocks.h"

#include "base/text.h"
#include "temporary.h"
#include "record/format.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/error.h"

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
    nl_buffer
        packed; /* records to write to the file or to return from it; a 32-bit size in bytes precedes each record */
    size_t at;
    nl_record *record, *corrected;
};

/* ---- options ---- */

static void add_ids(fix_options *o, char *text)
{
    for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
        o->ids = nl_memory_check(reallocarray(o->ids, o->what.id_count + 1, sizeof *o->ids));
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
    o->messages = nl_memory_check(reallocarray(o->messages, o->what.message_count + 1, sizeof *o->messages));
    o->messages[o->what.message_count++] = (correction_message){text, colon + 1};
    o->what.messages = o->messages;
    return true;
}

static bool set_ids(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    add_ids(settings, (char *)value);
    return true;
}

static bool set_message(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    if (add_message(settings, (char *)value))
        return true;
    return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not SENT:RECEIVED", value);
}

const nl_option fix_clocks_options[] = {
    {.name = "fix-clocks",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(fix_options, asked),
     .help = "Correct the times of all hosts to one clock, and print a report. The offsets come from the clock "
             "measurements in the logs (ClockOffset), and from messages, which cannot arrive before they are sent. "
             "DATE.ORIGINAL keeps the logged time"},
    {.name = "reference",
     .value = "HOST",
     .initial = "(the collector with the most measurements, otherwise the host with the most messages)",
     NL_OPTION_MEMBER(fix_options, what.reference),
     .help = "With --fix-clocks: host whose clock is the reference"},
    {.name = "id",
     .value = "FIELD,...",
     .initial = "(fields whose names end in ID, and SEQ)",
     .set = set_ids,
     .help = "With --fix-clocks: fields that identify a message"},
    {.name = "message",
     .value = "SENT:RECEIVED",
     .initial = "(events with paired names, such as Ping.Send and Ping.Receive)",
     .repeatable = true,
     .set = set_message,
     .help = "With --fix-clocks: events that mark the sending and the receipt of a message"},
    {0},
};

void fix_options_free(fix_options *o)
{
    free(o->ids);
    free(o->messages);
}

/* ---- the temporary file ---- */

static void fix_clocks_flush(fix_clocks *f)
{
    temporary_write(f->fd, f->directory, f->packed.data, f->packed.size);
    f->written += (off_t)f->packed.size;
    f->packed.size = 0;
}

static void fix_clocks_keep(fix_clocks *f, const nl_record *record)
{
    uint32_t size = 0;
    size_t start = f->packed.size;
    nl_buffer_append(&f->packed, (const char *)&size, sizeof size);
    if (!nl_record_pack(record, &f->packed))
        program_fail(PROGRAM_PROBLEM, "a record is too large for --fix-clocks");
    size = (uint32_t)(f->packed.size - start - sizeof size);
    memcpy(f->packed.data + start, &size, sizeof size);
    if (f->packed.size >= PIECE)
        fix_clocks_flush(f);
}

/* Reads from the file until `size` unread bytes are in memory. Returns false if the file has fewer bytes. */
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
        program_fail(PROGRAM_PROBLEM, "%s: the temporary data is damaged", f->directory);
    f->at += size;
    return correction_apply(f->correction, f->record, f->corrected) ? f->corrected : f->record;
}

/* ---- the report ---- */

static void fix_clocks_report_host(const correction_host *h)
{
    char error[32] = "unknown";
    if (isfinite(h->error_ns))
        snprintf(error, sizeof error, "%.1f us", h->error_ns / 1e3);
    if (h->is_reference) {
        program_error("clock of %s: reference", h->name);
    } else if (!h->is_known) {
        program_error("clock of %s: unknown offset; the host's times stay unchanged", h->name);
    } else {
        program_error("clock of %s: %+.6f s added (%+.6f to %+.6f), drift %+.2f ppm, error at most %s; %" PRIu64
                      " measurement%s, %" PRIu64 " message%s, %u period%s of constant rate, %u step%s",
                      h->name, h->offset_ns / 1e9, h->min_ns / 1e9, h->max_ns / 1e9, h->drift * 1e6, error,
                      h->measurements, nl_plural(h->measurements), h->messages, nl_plural(h->messages), h->pieces,
                      nl_plural(h->pieces), h->steps, nl_plural(h->steps));
        if (h->contradictions > 0)
            program_error("clock of %s: ignored %" PRIu64 " message%s that contradict%s the measurements", h->name,
                          h->contradictions, nl_plural(h->contradictions), h->contradictions == 1 ? "s" : "");
    }
}

static void fix_clocks_tell(const correction *c)
{
    size_t count = correction_host_count(c), unknown = 0;
    for (size_t i = 0; i < count; i++) {
        correction_host h = correction_get_host(c, i);
        if (i < HOSTS_TOLD)
            fix_clocks_report_host(&h);
        unknown += !h.is_known;
    }
    if (count > HOSTS_TOLD)
        program_error("and %zu more clock%s", count - HOSTS_TOLD, nl_plural(count - HOSTS_TOLD));
    if (count > 1 && unknown == count - 1)
        program_error("cannot compare clocks: the logs have no ClockOffset records (programs that log to a collector "
                      "write them), and no messages between hosts; see --message and --id");
}

/* ---- reading ---- */

static void read_log(fix_clocks *f, input_settings *settings, const char *name, uint64_t *records)
{
    const nl_record *record;
    program_log *log = program_log_open(&settings->reading, name, false, false);
    while (log != NULL && program_log_next(log, NULL, &record) == NL_OK) {
        if (settings->format == NL_FORMAT_UNKNOWN)
            settings->format = nl_format_is_text(record->raw_format) ? record->raw_format : NL_FORMAT_ULM;
        correction_learn(f->correction, record);
        if (settings->where.filter == NULL || nl_filter_matches(settings->where.filter, record))
            fix_clocks_keep(f, record);
        if (++*records % PROGRESS_RECORDS == 0) {
            uint64_t done, total;
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, *records);
        }
    }
    program_log_close(log);
}

fix_clocks *fix_clocks_read(const fix_options *options, input_settings *settings, char **files, size_t count,
                            const char *directory)
{
    fix_clocks *f = nl_memory_check(calloc(1, sizeof *f));
    uint64_t records = 0;
    f->correction = correction_new(&options->what);
    f->directory = directory;
    f->fd = temporary_open(directory);
    f->record = nl_record_new();
    f->corrected = nl_record_new();
    for (size_t i = 0; i < count; i++)
        read_log(f, settings, files[i], &records);
    fix_clocks_flush(f);
    program_progress_end();
    correction_solve(f->correction);
    fix_clocks_tell(f->correction);
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
