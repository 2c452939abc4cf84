#include "config.h"

#include "missing.h"

#include "file.h"
#include "journal.h"
#include "program/program.h"
#include "base/time_internal.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct written {
    char *name; /* of the journal, without .streams */
    nl_streams *taken;
    journal_mark mark;
} written;

struct missing {
    const char *folder;
    written *journals;
    size_t count;
};

typedef struct look {
    const char *folder;
    char **files;
    size_t count;
    const nl_sequences *held; /* by the files */
    bool missing;
} look;

/* The number in a file's name, which is the stem's; 0: it has none. */
static uint64_t missing_number_of(const char *path, const char *stem)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    if (strncmp(name, stem, strlen(stem)) == 0)
        name += strlen(stem) + strspn(name + strlen(stem), "-._");
    else if (strcmp(stem, "netlog") != 0) /* which journals are called where names begin with the number, too */
        return 0;
    return *name >= '0' && *name <= '9' ? strtoull(name, NULL, 10) : 0;
}

static void say_numbers(look *l, const char *stem, uint64_t from, uint64_t to)
{
    if (from == to)
        printf("%s: number %" PRIu64 " of %s is missing\n", l->folder, from, stem);
    else
        printf("%s: numbers %" PRIu64 " to %" PRIu64 " of %s are missing\n", l->folder, from, to, stem);
    l->missing = true;
}

/* The oldest files are removed on purpose, by whoever wants room: that they are gone is worth a word, no more. */
static void say_pruned(const look *l, const char *stem, uint64_t first)
{
    if (first > 2)
        printf("%s: note: %s begins with number %" PRIu64 ": 1 to %" PRIu64 " were removed\n", l->folder, stem, first,
               first - 1);
    else
        printf("%s: note: %s begins with number 2: 1 was removed\n", l->folder, stem);
}

/* Says which numbers up to the latest there are no files of. Of the latest nothing was written yet, perhaps. */
static void look_at_numbers(look *l, const char *stem, const journal_mark *mark)
{
    uint64_t *numbers = calloc(l->count + 1, sizeof *numbers), next = 1, last = mark->number;
    if (numbers == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    for (size_t i = 0; i < l->count; i++)
        numbers[i] = missing_number_of(l->files[i], stem);
    output_file_sort(numbers, l->count);
    last -= mark->size == 0 && last > 0;
    size_t i = 0;
    while (i < l->count && numbers[i] == 0) /* other files */
        i++;
    if (i < l->count && numbers[i] > 1 && numbers[i] <= mark->number) {
        say_pruned(l, stem, numbers[i]);
        next = numbers[i];
    }
    for (; i < l->count; i++) {
        if (numbers[i] > next && next <= last)
            say_numbers(l, stem, next, numbers[i] - 1 < last ? numbers[i] - 1 : last);
        next = numbers[i] >= next ? numbers[i] + 1 : next;
    }
    if (next <= last)
        say_numbers(l, stem, next, last);
    free(numbers);
}

/* Says when the file that was written last has become shorter. */
static void look_at_size(look *l, const journal_mark *mark)
{
    struct stat status;
    for (size_t i = 0; i < l->count; i++)
        if (stat(l->files[i], &status) == 0 && status.st_ino == mark->inode && (uint64_t)status.st_size < mark->size) {
            printf("%s: %" PRIu64 " bytes of what was written are missing at the end\n", l->files[i],
                   mark->size - (uint64_t)status.st_size);
            l->missing = true;
        }
}

/* Says when a stream that the files hold part of went on behind that. */
static void look_at_stream(void *user, const nl_stream_state *taken)
{
    look *l = user;
    uint64_t next;
    int64_t latest_ns;
    if (!nl_sequences_get(l->held, taken->stream, &next, &latest_ns) || next >= taken->next)
        return;
    char latest[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(latest_ns, latest);
    printf("%s: stream ", l->folder);
    for (size_t i = 0; i < sizeof taken->stream; i++)
        printf("%02x", taken->stream[i]);
    printf(": %" PRIu64 " records that were written are missing after %s\n", taken->next - next, latest);
    l->missing = true;
}

static int is_journal(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name), tail = strlen(".streams");
    return size > tail && strcmp(entry->d_name + size - tail, ".streams") == 0;
}

static char *path_of(const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return path;
}

static void read_journal(missing *m, const char *name)
{
    written *w = &m->journals[m->count];
    char *path = path_of(m->folder, name);
    w->taken = nl_streams_new();
    if (journal_look(path, w->taken, &w->mark)) {
        w->name = strndup(name, strlen(name) - strlen(".streams"));
        m->count++;
    } else {
        nl_streams_free(w->taken);
    }
    free(path);
}

missing *missing_open(const char *folder)
{
    missing *m = calloc(1, sizeof *m);
    struct dirent **names = NULL;
    char *delivered = path_of(folder, "delivered"); /* in a spool */
    int found = access(delivered, F_OK) == 0 ? 0 : scandir(folder, &names, is_journal, alphasort);
    found = found < 0 ? 0 : found; /* which listing its files says */
    if (m == NULL || (m->journals = calloc((size_t)found + 1, sizeof *m->journals)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    m->folder = folder;
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

bool missing_say(const missing *m, char **files, size_t count, const nl_sequences *held)
{
    look l = {.folder = m->folder, .files = files, .count = count, .held = held};
    for (size_t i = 0; i < m->count; i++) {
        const written *w = &m->journals[i];
        if (w->mark.number > 0)
            look_at_numbers(&l, w->name, &w->mark);
        look_at_size(&l, &w->mark);
        nl_streams_list(w->taken, look_at_stream, &l);
    }
    return l.missing;
}
