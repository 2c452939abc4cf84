/* Archives of netlogd: directories of numbered files. */
#include "config.h"

#include "program/program.h"
#include "program/reading.h"
#include "base/memory.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/*
 * Returns whether a directory entry is a log file of an archive. The other files in an archive are indexes, journals,
 * decisions of keep_where=, seals, damaged parts, and the position of a spool.
 */
static int is_of_archive(const struct dirent *entry)
{
    const char *name = entry->d_name;
    return name[0] != '.' && !ends_with(name, ".streams") && !ends_with(name, ".streams.new") &&
           !ends_with(name, ".damaged") && !ends_with(name, ".index") && !ends_with(name, ".index.new") &&
           !ends_with(name, ".values") && !ends_with(name, ".values.new") && !ends_with(name, ".keeping") &&
           !ends_with(name, ".keeping.new") && !ends_with(name, ".seal") && strcmp(name, "delivered") != 0;
}

bool program_is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static char *prefix_of(const char *directory)
{
    char *prefix = program_format("%s%s", directory, ends_with(directory, "/") ? "" : "/");
    return prefix;
}

bool program_list_archive(const char *directory, char ***files, size_t *count)
{
    struct dirent **entries;
    int found = scandir(directory, &entries, is_of_archive, versionsort);
    if (found < 0) {
        program_error("%s: %m", directory);
        return false;
    }
    *files = nl_memory_check(calloc((size_t)found + 1, sizeof **files));
    *count = 0;
    char *prefix = prefix_of(directory);
    for (int i = 0; i < found; i++) {
        char *name;
        struct stat status;
        name = program_format("%s%s", prefix, entries[i]->d_name);
        if (stat(name, &status) == 0 && S_ISREG(status.st_mode))
            (*files)[(*count)++] = name;
        else
            free(name);
        free(entries[i]);
    }
    free(entries);
    free(prefix);
    return true;
}

/* ---- the numbers of an archive's records ---- */

struct program_archive {
    char *prefix; /* prefix of the names of the archive's files: the directory and a slash */
    nl_sequences *numbers;
    struct program_archive *next;
};

void program_archive_begin(program_reading *reading, const char *directory)
{
    char *prefix = prefix_of(directory);
    struct program_archive *a = reading->archives;
    while (a != NULL && strcmp(a->prefix, prefix) != 0)
        a = a->next;
    if (a != NULL) {
        free(prefix);
        return;
    }
    a = nl_memory_check(calloc(1, sizeof *a));
    *a = (struct program_archive){prefix, nl_sequences_new(), reading->archives};
    reading->archives = a;
}

nl_sequences *program_archive_numbers(const program_reading *reading, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash + 1 - path) : 0;
    for (const struct program_archive *a = reading->archives; a != NULL && size > 0; a = a->next)
        if (strlen(a->prefix) == size && memcmp(a->prefix, path, size) == 0)
            return a->numbers;
    return NULL;
}

void program_archives_end(program_reading *reading)
{
    struct program_archive *a;
    while ((a = reading->archives) != NULL) {
        reading->archives = a->next;
        nl_sequences_free(a->numbers);
        free(a->prefix);
        free(a);
    }
}
