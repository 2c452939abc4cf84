/* nlkernel symbols: maps the kernel's functions to their source files. */
#include "config.h"

#include "command.h"
#include "program/program.h"
#include "symbol_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct arguments {
    const char *output;
} arguments;

static const nl_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "-",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the list of functions to FILE; - is standard output"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel symbols",
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "VMLINUX [MODULE...]",
    .summary =
        "Map the kernel's functions to their source files, from DWARF debug information in an unstripped vmlinux "
        "or module.",
    .notes = "Each line has FUNCTION, a tab and FILE:LINE. nlkernel graph --symbols FILE --filter-filepath "
             "net,kernel/sched draws only the calls in these directories. Example:\n\n"
             "  nlkernel symbols -o kernel.map /usr/lib/debug/boot/vmlinux-$(uname -r)",
};

static int write_map(const symbol_map *m, const char *path)
{
    bool is_file = strcmp(path, "-") != 0;
    FILE *to = is_file ? fopen(path, "we") : stdout;
    for (size_t i = 0; to != NULL && i < m->count; i++)
        fprintf(to, "%s\t%s:%u\n", m->places[i].function, m->places[i].file, m->places[i].line);
    bool ok = to != NULL && !ferror(to);
    if (is_file && to != NULL && fclose(to) != 0)
        ok = false;
    if (!ok)
        program_error("%s: %s", path, strerror(errno));
    return ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

int command_symbols(int argc, char **argv)
{
    arguments a = {0};
    symbol_map map = {0};
    int first = options_parse(&usage, argc, argv, &a), status = PROGRAM_DONE;
    if (first == argc)
        options_fail("missing VMLINUX, such as /usr/lib/debug/boot/vmlinux-VERSION");
    for (int i = first; i < argc && status == PROGRAM_DONE; i++)
        if (!symbol_map_read(&map, argv[i])) {
            program_print_error();
            status = PROGRAM_PROBLEM;
        }
    if (status == PROGRAM_DONE)
        status = write_map(&map, a.output);
    symbol_map_free(&map);
    return status;
}
