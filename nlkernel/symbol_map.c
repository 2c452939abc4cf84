#include "config.h"

#include "symbol_map.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void symbol_map_add(symbol_map *m, const char *function, const char *file, unsigned line)
{
    NL_ARRAY_GROW(m->places, m->count, m->capacity);
    m->places[m->count++] = (symbol_place){program_copy(function), program_copy(file), line};
}

static int order_places(const void *a, const void *b)
{
    const symbol_place *x = a, *y = b;
    int functions = strcmp(x->function, y->function), files = functions == 0 ? strcmp(x->file, y->file) : 0;
    return functions != 0 ? functions : files != 0 ? files : x->line < y->line ? -1 : x->line > y->line;
}

/* Sorts the places by function and file, and keeps one place for each function in a file. */
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

/* Parses and adds a line that consists of FUNCTION, a tab and FILE[:LINE]. Ignores blank lines and comments. Returns
 * false if the line is invalid. */
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
        nl_error_set(NL_ERROR_INVALID,
                     "%s:%zu: expected FUNCTION, a tab and FILE:LINE; the file is not an ELF file either", path,
                     number);
    else if (ferror(file))
        ok = nl_error_set_errno("%s", path) == NL_OK;
    free(line);
    return ok;
}

/* ---- DWARF ---- */

enum { PATH_SIZE = 4096 };

/* A directory in which the compiler has compiled units. */
typedef struct unit_directory {
    char *path;
    size_t below; /* number of units that were compiled in the directory and whose source file is below the directory */
} unit_directory;

typedef struct dwarf_reader {
    symbol_map *map;
    size_t first;           /* index of the first place of this file */
    char common[PATH_SIZE]; /* the longest directory that contains the sources of all units */
    size_t units;
    char directory[PATH_SIZE];   /* directory in which the current unit was compiled */
    unit_directory *directories; /* in the order of their first units */
    size_t directory_count;
} dwarf_reader;

/* Builds an absolute path without . and .. from a path. A relative path starts at `directory`. */
static void normalize(char out[PATH_SIZE], const char *directory, const char *path)
{
    char joined[2 * PATH_SIZE];
    snprintf(joined, sizeof joined, "%s/%s", *path == '/' ? "" : directory, path);
    size_t size = 0;
    for (const char *at = joined; *at != '\0';) {
        at += strspn(at, "/");
        size_t part = strcspn(at, "/");
        bool up = part == 2 && memcmp(at, "..", 2) == 0, stay = part == 0 || (part == 1 && *at == '.');
        if (up)
            while (size > 0 && out[--size] != '/')
                ;
        else if (!stay && size + part + 2 < PATH_SIZE) {
            out[size++] = '/';
            memcpy(out + size, at, part);
            size += part;
        }
        at += part;
    }
    out[size] = '\0';
}

/* Returns the part of `path` below `directory`, or NULL if `path` is not below `directory`. */
static const char *path_below(const char *path, const char *directory)
{
    size_t size = strlen(directory);
    return strncmp(path, directory, size) == 0 && path[size] == '/' ? path + size + 1 : NULL;
}

static unit_directory *find_or_add_directory(dwarf_reader *r)
{
    for (size_t i = r->directory_count; i-- > 0;)
        if (strcmp(r->directories[i].path, r->directory) == 0)
            return &r->directories[i];
    r->directories = nl_memory_check(reallocarray(r->directories, r->directory_count + 1, sizeof *r->directories));
    unit_directory *added = &r->directories[r->directory_count++];
    *added = (unit_directory){nl_memory_check(strdup(r->directory)), 0};
    return added;
}

static void note_unit(dwarf_reader *r, Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    const char *directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute)), *name = dwarf_diename(unit);
    char path[PATH_SIZE];
    normalize(r->directory, "/", directory != NULL ? directory : "/");
    if (name == NULL)
        return;
    normalize(path, r->directory, name);
    find_or_add_directory(r)->below += path_below(path, r->directory) != NULL;
    if (r->units++ == 0)
        memcpy(r->common, path, sizeof r->common);
    size_t same = 0, kept = 0;
    for (; path[same] != '\0' && path[same] == r->common[same]; same++)
        if (path[same] == '/')
            kept = same;
    if (r->common[same] == '\0' && path[same] == '/')
        kept = same;
    r->common[kept] = '\0';
}

static int add_dwarf_function(Dwarf_Die *die, void *user)
{
    dwarf_reader *r = user;
    Dwarf_Addr address;
    const char *name = dwarf_diename(die), *file = dwarf_decl_file(die);
    int line = 0;
    char path[PATH_SIZE];
    /* skip functions without code, which are declarations or were inlined */
    if (name == NULL || file == NULL || (dwarf_lowpc(die, &address) != 0 && !dwarf_hasattr(die, DW_AT_ranges)))
        return DWARF_CB_OK;
    dwarf_decl_line(die, &line);
    normalize(path, r->directory, file);
    symbol_map_add(r->map, name, path, line > 0 ? (unsigned)line : 0);
    return DWARF_CB_OK;
}

/*
 * Returns the directory that contains the sources of more than half of the units, and in which these units were
 * compiled. Returns NULL if no directory does.
 */
static const char *main_directory(const dwarf_reader *r)
{
    for (size_t i = 0; i < r->directory_count; i++)
        if (2 * r->directories[i].below > r->units)
            return r->directories[i].path;
    return NULL;
}

/*
 * Makes paths relative to the root of the source: the directory in which more than half of the units were compiled,
 * because assembler units may name another directory. Without such a directory, the root is the longest common
 * directory of all units.
 */
static void strip_root(dwarf_reader *r)
{
    const char *root = main_directory(r);
    for (size_t i = r->first; i < r->map->count; i++) {
        char *file = r->map->places[i].file;
        const char *rest = path_below(file, root != NULL ? root : r->common);
        if (rest != NULL)
            memmove(file, rest, strlen(rest) + 1);
    }
}

static bool read_dwarf(symbol_map *m, const char *path)
{
    static char *debug_path = NULL;
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = &debug_path};
    dwarf_reader *r = nl_memory_check(calloc(1, sizeof *r));
    r->map = m;
    r->first = m->count;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    bool ok = dwfl != NULL && dwfl_report_offline(dwfl, "", path, -1) != NULL;
    if (ok)
        dwfl_report_end(dwfl, NULL, NULL);
    if (!ok)
        nl_error_set(NL_ERROR_SYSTEM, "%s: %s", path, dwfl_errmsg(-1));
    Dwarf_Addr bias;
    for (Dwarf_Die *unit = NULL; ok && (unit = dwfl_nextcu(dwfl, unit, &bias)) != NULL;) {
        note_unit(r, unit);
        dwarf_getfuncs(unit, add_dwarf_function, r, 0);
    }
    if (ok && m->count == r->first) {
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "%s: the file has no DWARF; use an unstripped vmlinux, such as "
                     "/usr/lib/debug/boot/vmlinux-VERSION from the debug symbol package",
                     path);
        ok = false;
    }
    strip_root(r);
    if (dwfl != NULL)
        dwfl_end(dwfl);
    for (size_t i = 0; i < r->directory_count; i++)
        free(r->directories[i].path);
    free(r->directories);
    free(r);
    return ok;
}

/* ---- the map ---- */

bool symbol_map_read(symbol_map *m, const char *path)
{
    char start[4] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return nl_error_set_errno("%s", path) == NL_OK;
    size_t got = fread(start, 1, sizeof start, file);
    rewind(file);
    bool is_elf = got == sizeof start && memcmp(start, "\177ELF", 4) == 0;
    bool ok = is_elf ? read_dwarf(m, path) : read_lines(m, path, file);
    fclose(file);
    symbol_map_sort(m);
    return ok;
}

/* Finds the places of a function, and sets *count to their number. The first `size` bytes of `name` are the function's
 * name. */
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
