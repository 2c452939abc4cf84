/* nlkernel symbols: which source file each function is in. */
#include "config.h"

#include "command.h"
#include "json.h"
#include "program/program.h"
#include "symbol_map.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char **files; /* vmlinux, and modules */
    size_t file_count;
    const char *root, *output;
    bool json;
} arguments;

static bool add_file(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    a->files = nl_memory_check(reallocarray(a->files, a->file_count + 1, sizeof *a->files));
    a->files[a->file_count++] = value;
    return true;
}

static const nl_option options[] = {
    {.name = "kernel",
     .letter = 'k',
     .value = "VMLINUX",
     .repeatable = true,
     .set = add_file,
     .help = "Read the DWARF debug information of VMLINUX: an unstripped vmlinux, or a module"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "-",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the map to FILE; - is standard output"},
    {.name = "root",
     .value = "FOLDER",
     .initial = "(detected)",
     NL_OPTION_MEMBER(arguments, root),
     .help = "Common prefix of the paths in DWARF, which is removed"},
    {.name = "json", .letter = 'j', .type = NL_OPTION_FLAG, NL_OPTION_MEMBER(arguments, json), .help = "Print JSON"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel symbols",
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "-k VMLINUX [MODULE...]",
    .summary = "Map the kernel's functions to their source files, from DWARF debug information.",
    .notes = "A line is FUNCTION, a tab, FILE:LINE. nlkernel graph --symbols FILE --filter-filepath net,kernel/sched "
             "draws the calls of some of the source only. Example:\n\n"
             "  nlkernel symbols -k /usr/lib/debug/boot/vmlinux-$(uname -r) -o kernel.map",
};

static void print(const symbol_map *m, bool json, FILE *to)
{
    for (size_t i = 0; i < m->count; i++) {
        const symbol_place *p = &m->places[i];
        if (!json) {
            fprintf(to, "%s\t%s:%u\n", p->function, p->file, p->line);
            continue;
        }
        fprintf(to, "%s{\"function\":", i == 0 ? "[" : ",\n ");
        json_write_string(to, p->function);
        fprintf(to, ",\"file\":");
        json_write_string(to, p->file);
        fprintf(to, ",\"line\":%u}", p->line);
    }
    if (json)
        fprintf(to, "%s]\n", m->count == 0 ? "[" : "");
}

static int write_map(const symbol_map *m, const arguments *a)
{
    FILE *to = strcmp(a->output, "-") != 0 ? fopen(a->output, "we") : stdout;
    if (to == NULL) {
        program_error("%s: %s", a->output, strerror(errno));
        return PROGRAM_PROBLEM;
    }
    print(m, a->json, to);
    bool good = !ferror(to);
    if (to != stdout && (fclose(to) != 0 || !good)) {
        program_error("%s: %s", a->output, strerror(errno));
        return PROGRAM_PROBLEM;
    }
    return PROGRAM_DONE;
}

int command_symbols(int argc, char **argv)
{
    arguments a = {0};
    for (int i = options_parse(&usage, argc, argv, &a); i < argc; i++)
        add_file(&a, NULL, argv[i]);
    if (a.file_count == 0)
        options_fail("missing --kernel, such as -k /usr/lib/debug/boot/vmlinux-VERSION");
    symbol_map map = {0};
    int status = PROGRAM_DONE;
    for (size_t i = 0; i < a.file_count && status == PROGRAM_DONE; i++)
        if (!symbol_map_read(&map, a.files[i], a.root)) {
            program_error("%s", nl_error_message());
            status = PROGRAM_PROBLEM;
        }
    if (status == PROGRAM_DONE)
        status = write_map(&map, &a);
    symbol_map_free(&map);
    free(a.files);
    return status;
}
