/* --where, as every program that chooses records has it. */
#include "config.h"

#include "program/program.h"

#include <stdlib.h>

enum { OPTION_WHERE = 0x2100 };

static const struct argp_option options[] = {
    {"where", OPTION_WHERE, "EXPR", 0,
     "Only records that EXPR is true of, such as 'NL.EVNT == Read && SIZE > 65536 || PROG ~ \"dpss*\"'; again for a "
     "second condition. doc/expressions.md is about all that it may be",
     9},
    {0},
};

/* A second expression narrows what the first one left. */
static nl_filter *narrow(nl_filter *before, const char *expression)
{
    nl_filter *filter = nl_filter_parse(expression);
    if (filter == NULL || before == NULL)
        return filter;
    char *both = NULL;
    size_t size;
    FILE *text = open_memstream(&both, &size);
    if (text == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    fprintf(text, "(%s) && (%s)", nl_filter_text(before), nl_filter_text(filter));
    if (fclose(text) != 0)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    nl_filter_free(before);
    nl_filter_free(filter);
    filter = nl_filter_parse(both);
    free(both);
    return filter;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    nl_filter **where = state->input;
    if (key != OPTION_WHERE)
        return ARGP_ERR_UNKNOWN;
    *where = narrow(*where, argument);
    if (*where == NULL)
        argp_error(state, "--where: %s", nl_error_message());
    return 0;
}

const struct argp program_where_argp = {.options = options, .parser = parse};
