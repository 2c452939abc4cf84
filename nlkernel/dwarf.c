/* Functions and their source files, out of DWARF by libdw. */
#include "config.h"

#include "symbol_map.h"

#include "base/error.h"
#include "base/memory.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

/* Where units were compiled. */
typedef struct unit_folder {
    char *path;
    size_t below; /* so many of them lie below it */
} unit_folder;

typedef struct dwarf_reader {
    symbol_map *map;
    size_t first;           /* of the map's, that is this file's */
    char common[PATH_SIZE]; /* what all units' own paths begin with, up to a slash; "" before the first */
    size_t units;
    char folder[PATH_SIZE]; /* of the unit that is read: where it was compiled */
    unit_folder *folders;   /* the latest last */
    size_t folder_count;
} dwarf_reader;

/* An absolute path without . and .. in it, of a path and the folder that it is relative to. */
static void normalise(char out[PATH_SIZE], const char *folder, const char *path)
{
    char joined[2 * PATH_SIZE];
    snprintf(joined, sizeof joined, "%s/%s", *path == '/' ? "" : folder, path);
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

/* What of path follows folder and a slash; NULL when it does not lie there. */
static const char *below(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 && path[size] == '/' ? path + size + 1 : NULL;
}

static unit_folder *folder_of(dwarf_reader *r)
{
    for (size_t i = r->folder_count; i-- > 0;)
        if (strcmp(r->folders[i].path, r->folder) == 0)
            return &r->folders[i];
    r->folders = nl_memory_check(reallocarray(r->folders, r->folder_count + 1, sizeof *r->folders));
    unit_folder *added = &r->folders[r->folder_count++];
    *added = (unit_folder){nl_memory_check(strdup(r->folder)), 0};
    return added;
}

static void note_unit(dwarf_reader *r, Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute)), *name = dwarf_diename(unit);
    char path[PATH_SIZE];
    normalise(r->folder, "/", folder != NULL ? folder : "/");
    if (name == NULL)
        return;
    normalise(path, r->folder, name);
    folder_of(r)->below += below(path, r->folder) != NULL;
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

static int take_function(Dwarf_Die *die, void *user)
{
    dwarf_reader *r = user;
    Dwarf_Addr address;
    const char *name = dwarf_diename(die), *file = dwarf_decl_file(die);
    int line = 0;
    char path[PATH_SIZE];
    /* What has no code of its own is declared only, or was put into others. */
    if (name == NULL || file == NULL || (dwarf_lowpc(die, &address) != 0 && !dwarf_hasattr(die, DW_AT_ranges)))
        return DWARF_CB_OK;
    dwarf_decl_line(die, &line);
    normalise(path, r->folder, file);
    symbol_map_add(r->map, name, path, line > 0 ? (unsigned)line : 0);
    return DWARF_CB_OK;
}

/* The folder that most units lie below and were compiled in; NULL when there is none. */
static const char *main_folder(const dwarf_reader *r)
{
    for (size_t i = 0; i < r->folder_count; i++)
        if (2 * r->folders[i].below > r->units)
            return r->folders[i].path;
    return NULL;
}

/*
 * Where sources lie below: where they were compiled, as long as most do (what is written in assembler may say another
 * one); else what their paths have in common.
 */
static void strip_root(dwarf_reader *r, const char *root)
{
    char given[PATH_SIZE];
    if (root != NULL) {
        normalise(given, "/", root);
        root = given;
    } else {
        root = main_folder(r);
        root = root != NULL ? root : r->common;
    }
    for (size_t i = r->first; i < r->map->count; i++) {
        char *file = r->map->places[i].file;
        const char *rest = below(file, root);
        if (rest != NULL)
            memmove(file, rest, strlen(rest) + 1);
    }
}

bool symbol_map_read_dwarf(symbol_map *m, const char *path, const char *root)
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
    bool good = dwfl != NULL && dwfl_report_offline(dwfl, "", path, -1) != NULL;
    if (good)
        dwfl_report_end(dwfl, NULL, NULL);
    if (!good)
        nl_error_set(NL_ERROR_SYSTEM, "%s: %s", path, dwfl_errmsg(-1));
    Dwarf_Addr bias;
    for (Dwarf_Die *unit = NULL; good && (unit = dwfl_nextcu(dwfl, unit, &bias)) != NULL;) {
        note_unit(r, unit);
        dwarf_getfuncs(unit, take_function, r, 0);
    }
    if (good && m->count == r->first) {
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "%s: it has no DWARF; use a vmlinux that is not stripped, such as "
                     "/usr/lib/debug/boot/vmlinux-VERSION of a package of debugging symbols",
                     path);
        good = false;
    }
    strip_root(r, root);
    if (dwfl != NULL)
        dwfl_end(dwfl);
    for (size_t i = 0; i < r->folder_count; i++)
        free(r->folders[i].path);
    free(r->folders);
    free(r);
    return good;
}
