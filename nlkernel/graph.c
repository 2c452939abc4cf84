/* nlkernel graph: draws the calls between kernel functions. */
#include "config.h"

#include "call_draw.h"
#include "command.h"

#include <stdlib.h>

enum { TOP_DEFAULT = 150 };

typedef struct arguments {
    call_view view;
    log_input input;
    const char *output;
} arguments;

static const nl_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "calls.pdf",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the picture to FILE.pdf, .svg, .png or .dot"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel graph",
    .groups = (const options_group[]){{NULL, options, 0}, CALL_VIEW_GROUPS(arguments), {0}},
    .operands = "[SOURCE...]",
    .summary = "Draw the call chains in the kernel, with callers on the left. Functions with more calls are drawn in a "
               "deeper red.",
    .notes = "Example:\n\n"
             "  nlkernel record --functions --filter-function 'tcp_*' --duration 10s -o calls.nlb\n"
             "  nlkernel graph -o calls.pdf calls.nlb\n\n" CALLS_SOURCES ".",
};

int command_graph(int argc, char **argv)
{
    arguments a = {.view = {.top = TOP_DEFAULT, .chains = true}};
    int first = options_parse(&usage, argc, argv, &a);
    if (!call_draw_knows(a.output))
        options_fail("--output: %s", nl_error_message());
    int status = call_view_read(&a.view, &a.input, argv + first, (size_t)(argc - first));
    if (a.view.count > 0 && !call_draw_graph(&a.view, a.output)) {
        status = PROGRAM_PROBLEM;
    } else if (a.view.count > 0) {
        char *summary = call_view_summary(&a.view);
        fprintf(stderr, "nlkernel: %s in %s\n", summary, a.output);
        free(summary);
    }
    call_view_free(&a.view);
    return status;
}
