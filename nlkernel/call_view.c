#include "config.h"

#include "call_view.h"

#include "base/text.h"
#include "base/error.h"
#include "trace_dat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

const nl_option call_view_rows[] = {
    {.name = "symbols",
     .value = "FILE",
     .initial = "(detected in /usr/lib/debug and /lib/modules if --filter-filepath is given)",
     NL_OPTION_MEMBER(call_view, symbols),
     .help =
         "File that names the source file of each function: the output of nlkernel symbols, or a vmlinux with DWARF"},
    {.name = "filter-filepath",
     .value = "PATH[,PATH...]",
     NL_OPTION_MEMBER(call_view, filepaths),
     .help = "Show only functions in these directories and files of the kernel source, such as net,kernel/sched"},
    {.name = "min-count",
     .type = NL_OPTION_COUNT,
     .initial = "0",
     NL_OPTION_MEMBER(call_view, min_count),
     .help = "Show only functions with at least COUNT calls"},
    {.name = "top",
     .type = NL_OPTION_COUNT,
     .initial = "(150 in graph, 30 in calls)",
     NL_OPTION_MEMBER(call_view, top),
     .help = "Show only the COUNT functions with the most calls; 0 shows all functions"},
    {0},
};

/* ---- calls ---- */

static void take_call_record(void *user, const nl_record *record)
{
    calls_take(user, record);
}

/* Reads and decompresses a whole trace.dat file. For any other file, stops after the first bytes and returns false. */
static bool load_trace_dat(nl_buffer *bytes, const char *path)
{
    nl_source *source = program_source_open_stored(path);
    const char *data;
    size_t size;
    nl_status status = NL_FAILED;
    while (source != NULL && (status = program_source_read(source, &data, &size)) == NL_OK) {
        nl_buffer_append(bytes, data, size);
        if (bytes->size >= TRACE_DAT_MAGIC_SIZE && !trace_dat_detect(bytes->data, bytes->size))
            break;
    }
    nl_source_close(source);
    return status == NL_END && trace_dat_detect(bytes->data, bytes->size);
}

/*
 * Reads a source. On failure, reports the problem and returns false. A trace.dat must be a regular file, because
 * nlkernel inspects the first bytes and then reads the file again.
 */
static bool read_call_source(calls *c, log_input *input, const char *name)
{
    struct stat status;
    const char *path = strcmp(name, "-") == 0 ? "/dev/stdin" : name;
    nl_buffer bytes = {0};
    bool ok;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && load_trace_dat(&bytes, path)) {
        ok = trace_dat_read(c, input->where.filter, bytes.data, bytes.size);
        program_count_records(&input->reading, ok);
        if (!ok) {
            nl_error_prepend("%s", name);
            program_input_failed(&input->reading);
        }
    } else {
        ok = log_input_read(input, name, take_call_record, c);
    }
    nl_buffer_free(&bytes);
    return ok;
}

/* Reads the sources, or standard input if `count` is 0, and finishes `input`. Returns an exit status. */
static int read_calls(calls *c, log_input *input, char **names, size_t count)
{
    int status = PROGRAM_DONE;
    input->reading.undated = true; /* only differences of times matter */
    for (size_t i = 0; i < (count > 0 ? count : 1); i++)
        if (!read_call_source(c, input, count > 0 ? names[i] : "-"))
            status = PROGRAM_PROBLEM;
    calls_finish(c);
    bool has_records = program_has_records(&input->reading, input->reading.records, "");
    if (log_input_finish(input) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    if (c->total == 0 && has_records) {
        program_error("no function calls found; nlkernel record --functions records them");
        status = PROGRAM_PROBLEM;
    }
    return status;
}

/* ---- files ---- */

/*
 * Returns the path of a vmlinux for a kernel release, in one of the usual directories. If `kernel` is "", searches for
 * the release of the running kernel. The caller frees the path. Returns NULL and sets the error if no such file exists.
 */
static char *find_vmlinux(const char *kernel)
{
    static const char *const places[][2] = {{"/usr/lib/debug/boot/vmlinux-", ""},
                                            {"/usr/lib/debug/lib/modules/", "/vmlinux"},
                                            {"/lib/modules/", "/build/vmlinux"}};
    struct utsname here;
    if (*kernel == '\0' && uname(&here) == 0)
        kernel = here.release;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *path = program_format("%s%s%s", places[i][0], kernel, places[i][1]);
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return nl_error_null(NL_ERROR_NOT_FOUND,
                         "--filter-filepath requires the source file of each function, but neither /usr/lib/debug nor "
                         "/lib/modules has a vmlinux with DWARF for kernel %s; use --symbols FILE with the output of "
                         "nlkernel symbols VMLINUX",
                         kernel);
}

static bool read_symbols(call_view *v)
{
    if (v->symbols == NULL && v->filepaths == NULL)
        return true;
    char *path = v->symbols != NULL ? program_copy(v->symbols) : find_vmlinux(v->calls.kernel);
    bool ok = path != NULL && symbol_map_read(&v->map, path);
    if (!ok)
        program_print_error();
    free(path);
    return ok;
}

/* Returns whether the comma-separated list `paths` contains `file` or a directory above it. */
static bool path_is_below(const char *file, const char *paths)
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

static bool view_selects(const call_view *v, uint32_t function)
{
    if (v->filepaths == NULL)
        return true;
    size_t count;
    const symbol_place *places = symbol_map_find(&v->map, calls_name(&v->calls, function), &count);
    for (size_t i = 0; i < count; i++)
        if (path_is_below(places[i].file, v->filepaths))
            return true;
    return false;
}

const char *call_view_file(const call_view *v, uint32_t function, size_t *more)
{
    size_t count;
    const symbol_place *places = symbol_map_find(&v->map, calls_name(&v->calls, function), &count);
    if (more != NULL)
        *more = count > 1 ? count - 1 : 0;
    for (size_t i = 0; i < count && v->filepaths != NULL; i++)
        if (path_is_below(places[i].file, v->filepaths))
            return places[i].file;
    return count > 0 ? places->file : "";
}

/* ---- selection ---- */

static void select_functions(call_view *v)
{
    v->order = calls_in_order(&v->calls, v->chains);
    for (size_t i = 0; i < v->calls.function_count && (v->top == 0 || v->count < v->top); i++) {
        uint64_t heat = calls_heat(&v->calls.functions[v->order[i]], v->chains);
        if (heat > 0 && heat >= v->min_count && view_selects(v, v->order[i]))
            v->order[v->count++] = v->order[i];
    }
}

int call_view_read(call_view *v, log_input *input, char **names, size_t count)
{
    int status = read_calls(&v->calls, input, names, count);
    if (v->calls.total == 0)
        return status;
    if (!read_symbols(v))
        return PROGRAM_PROBLEM;
    calls_sort_edges(&v->calls);
    select_functions(v);
    if (v->count == 0) {
        char *often = v->min_count > 0
                          ? program_format(" with at least %" PRIu64 " call%s", v->min_count, nl_plural(v->min_count))
                          : nl_memory_check(strdup(""));
        program_error("the log contains no function%s%s%s", often, v->filepaths != NULL ? " in files below " : "",
                      v->filepaths != NULL ? v->filepaths : "");
        free(often);
        status = PROGRAM_PROBLEM;
    }
    return status;
}

char *call_view_summary(const call_view *v)
{
    const calls *c = &v->calls;
    char lost[64] = "", time[48] = "";
    if (c->lost > 0)
        snprintf(lost, sizeof lost, ", %" PRIu64 " event%s lost", c->lost, nl_plural(c->lost));
    if (c->to_ns > c->from_ns)
        snprintf(time, sizeof time, " in %.3f s", (double)(c->to_ns - c->from_ns) / 1e9);
    return program_format("%" PRIu64 " %s%s of %zu function%s%s%s; %zu shown", c->total, c->samples ? "sample" : "call",
                          nl_plural(c->total), c->function_count, nl_plural(c->function_count), time, lost, v->count);
}

void call_view_free(call_view *v)
{
    calls_free(&v->calls);
    symbol_map_free(&v->map);
    free(v->order);
}
