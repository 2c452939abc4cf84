#include "config.h"

#include "call_view.h"

#include "base/memory.h"
#include "program/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const nl_option call_view_rows[] = {
    {.name = "symbols",
     .value = "FILE",
     .initial = "(detected in /usr/lib/debug if --filter-filepath is given)",
     NL_OPTION_MEMBER(call_view, symbols),
     .help =
         "Read the source file of each function from FILE: the output of nlkernel symbols, or a vmlinux with DWARF"},
    {.name = "filter-filepath",
     .value = "PATH[,PATH...]",
     NL_OPTION_MEMBER(call_view, filepaths),
     .help = "Show only functions in these directories and files of the kernel source: net,kernel/sched"},
    {.name = "min-count",
     .type = NL_OPTION_COUNT,
     .initial = "0",
     NL_OPTION_MEMBER(call_view, min_count),
     .help = "Show only functions with at least COUNT calls"},
    {.name = "top",
     .type = NL_OPTION_COUNT,
     .initial = "(150 in graph, 30 in report)",
     NL_OPTION_MEMBER(call_view, top),
     .help = "Show only the COUNT functions with the most calls; 0 shows all"},
    {0},
};

/* ---- files ---- */

/* Where the vmlinux of a kernel with its DWARF usually is. NULL after having said what is missing. */
static char *usual_vmlinux(const char *kernel)
{
    static const char *const places[] = {"/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
                                         "/lib/modules/%s/build/vmlinux"};
    char path[512];
    struct utsname here;
    if (*kernel == '\0' && uname(&here) == 0)
        kernel = here.release;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, places[i], kernel);
#pragma GCC diagnostic pop
        if (access(path, R_OK) == 0)
            return strdup(path);
    }
    program_error(
        "--filter-filepath wants to know which source file each function is in: --symbols FILE, which nlkernel "
        "symbols -k VMLINUX makes of a vmlinux with DWARF (there is none of kernel %s in /usr/lib/debug)",
        kernel);
    return NULL;
}

static bool read_symbols(call_view *v)
{
    if (v->symbols == NULL && v->filepaths == NULL)
        return true;
    char *usual = v->symbols == NULL ? usual_vmlinux(v->calls.kernel) : NULL;
    const char *path = v->symbols != NULL ? v->symbols : usual;
    bool good = path != NULL && symbol_map_read(&v->map, path, NULL);
    if (path != NULL && !good)
        program_error("%s", nl_error_message());
    free(usual);
    return good;
}

/* Whether a file is one of those paths, or below one. */
static bool is_below(const char *file, const char *paths)
{
    for (const char *at = paths; *at != '\0';) {
        size_t size = strcspn(at, ","), plain = size;
        while (plain > 1 && at[plain - 1] == '/')
            plain--;
        if (plain > 0 && strncmp(file, at, plain) == 0 && (file[plain] == '\0' || file[plain] == '/'))
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

static bool is_meant(const call_view *v, uint32_t function)
{
    if (v->filepaths == NULL)
        return true;
    size_t count;
    const symbol_place *places = symbol_map_find(&v->map, calls_name(&v->calls, function), &count);
    for (size_t i = 0; i < count; i++)
        if (is_below(places[i].file, v->filepaths))
            return true;
    return false;
}

const char *call_view_file(const call_view *v, uint32_t function, size_t *more)
{
    size_t count;
    const symbol_place *places = symbol_map_find(&v->map, calls_name(&v->calls, function), &count);
    *more = count > 1 ? count - 1 : 0;
    for (size_t i = 0; i < count && v->filepaths != NULL; i++)
        if (is_below(places[i].file, v->filepaths))
            return places[i].file;
    return count > 0 ? places->file : "";
}

/* ---- choosing ---- */

static void choose(call_view *v)
{
    size_t kept = 0;
    v->order = calls_in_order(&v->calls, v->chains);
    v->shown = nl_memory_check(calloc(v->calls.function_count + 1, sizeof *v->shown));
    for (size_t i = 0; i < v->calls.function_count && (v->top == 0 || kept < v->top); i++) {
        uint64_t heat = calls_heat(&v->calls.functions[v->order[i]], v->chains);
        if (heat == 0 || heat < v->min_count || !is_meant(v, v->order[i]))
            continue;
        v->shown[v->order[i]] = true;
        v->order[kept++] = v->order[i];
    }
    v->count = kept;
}

int call_view_read(call_view *v, char **names, size_t count)
{
    int status = calls_read(&v->calls, &v->reading, names, count);
    if (v->calls.total == 0)
        return status;
    if (!read_symbols(v))
        return PROGRAM_PROBLEM;
    calls_sort_edges(&v->calls);
    choose(v);
    if (v->count == 0) {
        program_error("none of the %zu functions is in %s and was called %" PRIu64 " times", v->calls.function_count,
                      v->filepaths != NULL ? v->filepaths : "the log", v->min_count);
        status = PROGRAM_PROBLEM;
    }
    return status;
}

char *call_view_summary(const call_view *v)
{
    const calls *c = &v->calls;
    char lost[64] = "", time[48] = "";
    if (c->lost > 0)
        snprintf(lost, sizeof lost, ", %" PRIu64 " events lost", c->lost);
    if (c->to_ns > c->from_ns)
        snprintf(time, sizeof time, " in %.3f s", (double)(c->to_ns - c->from_ns) / 1e9);
    return program_format("%" PRIu64 " %s of %zu functions%s%s; %zu shown", c->total, c->samples ? "samples" : "calls",
                          c->function_count, time, lost, v->count);
}

void call_view_free(call_view *v)
{
    calls_free(&v->calls);
    symbol_map_free(&v->map);
    free(v->shown);
    free(v->order);
    v->shown = NULL;
    v->order = NULL;
}
