#include "config.h"

#include "symbol_map.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void symbol_map_add(symbol_map *m, const char *function, const char *file, unsigned line)
{
    if (m->count == m->capacity) {
        m->capacity = m->capacity == 0 ? 1024 : 2 * m->capacity;
        m->places = nl_memory_check(reallocarray(m->places, m->capacity, sizeof *m->places));
    }
    m->places[m->count++] = (symbol_place){program_copy(function), program_copy(file), line};
}

static int order_places(const void *a, const void *b)
{
    const symbol_place *x = a, *y = b;
    int functions = strcmp(x->function, y->function), files = functions == 0 ? strcmp(x->file, y->file) : 0;
    return functions != 0 ? functions : files != 0 ? files : x->line < y->line ? -1 : x->line > y->line;
}

/* Sorts the places, and removes those of one function in one file. */
static void symbol_map_sort(symbol_map *m)
{
    size_t kept = 0;
    if (m->count > 0)
        qsort(m->places, m->count, sizeof *m->places, order_places);
    for (size_t i = 0; i < m->count; i++) {
        symbol_place *last = kept > 0 ? &m->places[kept - 1] : NULL;
        if (last != NULL && strcmp(last->function, m->places[i].function) == 0 &&
            strcmp(last->file, m->places[i].file) == 0) {
            free(m->places[i].function);
            free(m->places[i].file);
        } else {
            m->places[kept++] = m->places[i];
        }
    }
    m->count = kept;
}

/* Takes a line: FUNCTION, a tab, FILE[:LINE]. */
static bool symbol_map_take_line(symbol_map *m, char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
    if (*line == '\0' || *line == '#')
        return true;
    char *file = strchr(line, '\t');
    if (file == NULL || file == line || file[1] == '\0')
        return false;
    *file++ = '\0';
    char *colon = strrchr(file, ':'), *end = NULL;
    unsigned long number = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    if (colon != NULL && end != colon + 1 && *end == '\0')
        *colon = '\0';
    symbol_map_add(m, line, file, (unsigned)number);
    return true;
}

static bool read_lines(symbol_map *m, const char *path, FILE *file)
{
    char *line = NULL;
    size_t capacity = 0, number = 0;
    bool ok = true;
    while (ok && getline(&line, &capacity, file) >= 0) {
        number++;
        ok = symbol_map_take_line(m, line);
    }
    if (!ok)
        nl_error_set(NL_ERROR_INVALID, "%s:%zu: neither an ELF file nor a line of FUNCTION, a tab, FILE:LINE", path,
                     number);
    else if (ferror(file))
        ok = nl_error_set_errno("%s", path) == NL_OK;
    free(line);
    return ok;
}

bool symbol_map_read(symbol_map *m, const char *path)
{
    char start[4] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return nl_error_set_errno("%s", path) == NL_OK;
    size_t got = fread(start, 1, sizeof start, file);
    rewind(file);
    bool is_elf = got == sizeof start && memcmp(start, "\177ELF", 4) == 0;
    bool ok = is_elf ? symbol_map_read_dwarf(m, path) : read_lines(m, path, file);
    fclose(file);
    symbol_map_sort(m);
    return ok;
}

/* Finds the places of the function whose name is the first size bytes of name. */
static const symbol_place *find_places(const symbol_map *m, const char *name, size_t size, size_t *count)
{
    char *function = nl_memory_check(strndup(name, size));
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(function, m->places[middle].function) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < m->count && strcmp(function, m->places[low + *count].function) == 0;)
        ++*count;
    free(function);
    return *count > 0 ? &m->places[low] : NULL;
}

const symbol_place *symbol_map_find(const symbol_map *m, const char *function, size_t *count)
{
    const symbol_place *found = find_places(m, function, strlen(function), count);
    size_t plain = strcspn(function, ".");
    return found != NULL || plain == 0 ? found : find_places(m, function, plain, count);
}

void symbol_map_free(symbol_map *m)
{
    for (size_t i = 0; i < m->count; i++) {
        free(m->places[i].function);
        free(m->places[i].file);
    }
    free(m->places);
    *m = (symbol_map){0};
}
