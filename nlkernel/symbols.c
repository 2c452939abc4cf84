/* nlkernel symbols: which source file each function is in. */
#include "config.h"

#include "command.h"
#include "json.h"
#include "program/program.h"
#include "symbol_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char **files; /* vmlinux, and modules */
    size_t file_count;
    const char *root, *output;
    bool json;
} arguments;

enum { OPTION_ROOT = 0x1000 };

static const struct argp_option options[] = {
    {"kernel", 'k', "VMLINUX", 0,
     "Read the DWARF of this file: a vmlinux that was not stripped, or a module; again for more", 0},
    {"output", 'o', "FILE", 0, "Write there (default: standard output)", 0},
    {"root", OPTION_ROOT, "FOLDER", 0, "What paths in DWARF begin with, and is left out (default: found out)", 0},
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case 'k':
    case ARGP_KEY_ARG:
        a->files = reallocarray(a->files, a->file_count + 1, sizeof *a->files);
        if (a->files == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        a->files[a->file_count++] = argument;
        return 0;
    case 'o':
        a->output = argument;
        return 0;
    case OPTION_ROOT:
        a->root = argument;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case ARGP_KEY_END:
        if (a->file_count == 0)
            argp_error(state, "no kernel is given: -k /usr/lib/debug/boot/vmlinux-VERSION, for one");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "-k VMLINUX",
    .doc = "Make the map of the kernel's functions to their source files, out of DWARF."
           "\vA line is FUNCTION, a tab, FILE:LINE. nlkernel graph --symbols FILE --filter-filepath net,kernel/sched "
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
    FILE *to = a->output != NULL && strcmp(a->output, "-") != 0 ? fopen(a->output, "we") : stdout;
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
    argp_parse(&argp, argc, argv, 0, NULL, &a);
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
