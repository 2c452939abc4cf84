/* Archives: folders of numbered files, as netlogd keeps them. */
#include "config.h"

#include "program/program.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/* Beside the files lie the journal of what was taken, and what was taken out of damaged ones. */
static int is_of_archive(const struct dirent *entry)
{
    const char *name = entry->d_name;
    return name[0] != '.' && !ends_with(name, ".streams") && !ends_with(name, ".streams.new") &&
           !ends_with(name, ".damaged");
}

bool program_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool program_list_archive(const char *folder, char ***files, size_t *count)
{
    struct dirent **entries;
    int found = scandir(folder, &entries, is_of_archive, versionsort);
    if (found < 0) {
        program_error("open %s: %m", folder);
        return false;
    }
    *files = calloc((size_t)found + 1, sizeof **files);
    if (*files == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    *count = 0;
    for (int i = 0; i < found; i++) {
        char *name;
        struct stat status;
        if (asprintf(&name, "%s%s%s", folder, ends_with(folder, "/") ? "" : "/", entries[i]->d_name) < 0)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        if (stat(name, &status) == 0 && S_ISREG(status.st_mode))
            (*files)[(*count)++] = name;
        else
            free(name);
        free(entries[i]);
    }
    free(entries);
    return true;
}
