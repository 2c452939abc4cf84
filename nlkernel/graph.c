/* nlkernel graph: who calls whom in the kernel, drawn. */
#include "config.h"

#include "call_draw.h"
#include "command.h"

#include <stdlib.h>

enum { TOP_DEFAULT = 150 };

typedef struct arguments {
    call_view view;
    const char *output;
    char **sources;
    size_t source_count;
} arguments;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Draw there: .pdf, .svg, .png or .dot (default calls.pdf)", 0},
    {0},
};

static const struct argp_child children[] = {{&call_view_argp, 0, "", 1}, {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->view;
        return 0;
    case 'o':
        a->output = argument;
        return 0;
    case ARGP_KEY_ARGS:
        a->sources = state->argv + state->next;
        a->source_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END:
        if (!call_draw_knows(a->output))
            argp_error(state, "%s", nl_error_message());
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "[SOURCE...]",
    .doc = "Draw the chains of calls in the kernel, from callers on the left to what they call; the hotter the redder."
           "\vExample:\n\n"
           "  nlkernel record --functions --filter-function 'tcp_*' -d 10s -o calls.nlb\n"
           "  nlkernel graph -o calls.pdf calls.nlb\n\n"
           "The 150 most called functions are drawn unless --top or --min-count say otherwise. " CALLS_SOURCES ".",
};

int command_graph(int argc, char **argv)
{
    arguments a = {.view = {.top = TOP_DEFAULT, .chains = true}, .output = "calls.pdf"};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int status = call_view_read(&a.view, a.sources, a.source_count);
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
