#include "config.h"

#include "missing.h"

#include "file.h"
#include "journal.h"
#include "base/memory.h"
#include "program/program.h"
#include "base/time_internal.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct written {
    char *name; /* name of the journal, without .streams */
    nl_streams *taken;
    journal_mark mark;
} written;

struct missing {
    const char *directory;
    written *journals;
    size_t count;
};

typedef struct look {
    const char *directory;
    char **files;
    size_t count;
    const nl_sequences *held; /* the numbers of the records in the files */
    bool missing;
} look;

/* Returns the number in the name of a file that begins with the stem, or 0 if the name has no number. */
static uint64_t missing_number_of(const char *path, const char *stem)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    if (strncmp(name, stem, strlen(stem)) == 0)
        name += strlen(stem) + strspn(name + strlen(stem), "-._");
    else if (strcmp(stem, "netlog") !=
             0) /* a journal with this stem also covers file names that begin with the number */
        return 0;
    return *name >= '0' && *name <= '9' ? strtoull(name, NULL, 10) : 0;
}

static void report_numbers(look *l, const char *stem, uint64_t from, uint64_t to)
{
    if (from == to)
        printf("%s: file number %" PRIu64 " of \"%s\" is missing\n", l->directory, from, stem);
    else
        printf("%s: file numbers %" PRIu64 " to %" PRIu64 " of \"%s\" are missing\n", l->directory, from, to, stem);
    l->missing = true;
}

/* Prints a note about missing oldest files, because netlogd removes them intentionally. */
static void report_removed(const look *l, const char *stem, uint64_t first)
{
    if (first > 2)
        printf("%s: note: file numbers 1 to %" PRIu64 " of \"%s\" were removed\n", l->directory, first - 1, stem);
    else
        printf("%s: note: file number 1 of \"%s\" was removed\n", l->directory, stem);
}

/* Reports numbers for which there is no file. The latest file may still be empty. */
static void missing_check_numbers(look *l, const char *stem, const journal_mark *mark)
{
    uint64_t *numbers = nl_memory_check(calloc(l->count + 1, sizeof *numbers)), next = 1, last = mark->number;
    for (size_t i = 0; i < l->count; i++)
        numbers[i] = missing_number_of(l->files[i], stem);
    output_file_sort(numbers, l->count);
    last -= mark->size == 0 && last > 0;
    size_t i = 0;
    while (i < l->count && numbers[i] == 0) /* skip other files */
        i++;
    if (i < l->count && numbers[i] > 1 && numbers[i] <= mark->number) {
        report_removed(l, stem, numbers[i]);
        next = numbers[i];
    }
    for (; i < l->count; i++) {
        if (numbers[i] > next && next <= last)
            report_numbers(l, stem, next, numbers[i] - 1 < last ? numbers[i] - 1 : last);
        next = numbers[i] >= next ? numbers[i] + 1 : next;
    }
    if (next <= last)
        report_numbers(l, stem, next, last);
    free(numbers);
}

static void missing_check_size(look *l, const journal_mark *mark)
{
    struct stat status;
    for (size_t i = 0; i < l->count; i++)
        if (stat(l->files[i], &status) == 0 && status.st_ino == mark->inode && (uint64_t)status.st_size < mark->size) {
            uint64_t lost = mark->size - (uint64_t)status.st_size;
            printf("%s: %" PRIu64 " written byte%s missing at the end\n", l->files[i], lost,
                   lost == 1 ? " is" : "s are");
            l->missing = true;
        }
}

/* Reports a stream whose latest records are missing. Ignores streams without records in the files. */
static void missing_check_stream(void *user, const nl_stream_state *taken)
{
    look *l = user;
    uint64_t next;
    int64_t latest_ns;
    if (!nl_sequences_get(l->held, taken->stream, &next, &latest_ns) || next >= taken->next)
        return;
    char latest[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(latest_ns, latest);
    printf("%s: stream ", l->directory);
    for (size_t i = 0; i < sizeof taken->stream; i++)
        printf("%02x", taken->stream[i]);
    printf(": %" PRIu64 " written record%s missing after %s\n", taken->next - next,
           taken->next - next == 1 ? " is" : "s are", latest);
    l->missing = true;
}

static int is_journal(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name), tail = strlen(".streams");
    return size > tail && strcmp(entry->d_name + size - tail, ".streams") == 0;
}

static void read_journal(missing *m, const char *name)
{
    written *w = &m->journals[m->count];
    char *path = program_format("%s/%s", m->directory, name);
    w->taken = nl_streams_new();
    if (journal_look(path, w->taken, &w->mark)) {
        w->name = strndup(name, strlen(name) - strlen(".streams"));
        m->count++;
    } else {
        nl_streams_free(w->taken);
    }
    free(path);
}

missing *missing_open(const char *directory)
{
    missing *m = nl_memory_check(calloc(1, sizeof *m));
    struct dirent **names = NULL;
    char *delivered = program_format("%s/%s", directory, "delivered"); /* a file that only a spool has */
    int found = access(delivered, F_OK) == 0 ? 0 : scandir(directory, &names, is_journal, alphasort);
    found = found < 0 ? 0 : found; /* if the listing failed, a later listing of the files reports the error */
    m->journals = nl_memory_check(calloc((size_t)found + 1, sizeof *m->journals));
    m->directory = directory;
    for (int i = 0; i < found; i++) {
        read_journal(m, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    free(delivered);
    return m;
}

void missing_free(missing *m)
{
    for (size_t i = 0; i < m->count; i++) {
        nl_streams_free(m->journals[i].taken);
        free(m->journals[i].name);
    }
    free(m->journals);
    free(m);
}

bool missing_report(const missing *m, char **files, size_t count, const nl_sequences *held)
{
    look l = {.directory = m->directory, .files = files, .count = count, .held = held};
    for (size_t i = 0; i < m->count; i++) {
        const written *w = &m->journals[i];
        if (w->mark.number > 0)
            missing_check_numbers(&l, w->name, &w->mark);
        missing_check_size(&l, &w->mark);
        nl_streams_list(w->taken, missing_check_stream, &l);
    }
    return l.missing;
}
