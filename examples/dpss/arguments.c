#include "arguments.h"

#include <stdlib.h>
#include <string.h>

enum { INVALID = 2 };

const unit units_none[] = {{"", 1}, {NULL, 0}};
const unit units_rate[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {NULL, 0}};
const unit units_time[] = {{"", 1e9}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
const unit units_share[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
const unit units_size[] = {{"", 1}, {"k", 1024}, {"m", 1048576}, {NULL, 0}};

double arguments_number(const struct argp_state *state, const char *text, const unit *units, double minimum,
                        double maximum, const char *example)
{
    char *rest;
    double value = strtod(text, &rest);
    while (units->name != NULL && strcmp(units->name, rest) != 0)
        units++;
    value *= units->factor;
    if (rest == text || units->name == NULL || !(value >= minimum) || value > maximum)
        argp_failure(state, INVALID, 0, "invalid value %s; use %s", text, example);
    return value;
}

static error_t arguments_parse_help(int key, char *text, struct argp_state *state)
{
    (void)text;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = state->input;
    else if (key == 'h')
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

void arguments_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    static const struct argp_option help[] = {{"help", 'h', NULL, 0, "Print this help", -1}, {0}};
    const struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
    const struct argp all = {help, arguments_parse_help, NULL, NULL, children, NULL, NULL};
    argp_err_exit_status = INVALID;
    argp_parse(&all, argc, argv, ARGP_NO_HELP, NULL, input);
}
