#include "config.h"

#include "program/options_help.h"

#include "base/memory.h"
#include "program/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 128 };

typedef struct options_reading {
    const options_usage *usage;
    char *base; /* the settings */
    void (*report)(void *user, const char *message);
    void *user;
    bool failed;
    const nl_option *collector; /* the option that gets the operands; NULL: the operands stay in argv */
    char *collector_base;
    const nl_option *given[OPTIONS_MAX]; /* the rows on the command line, without repetitions */
    size_t given_count;
} options_reading;

NL_PRINTF(2, 3)
static void options_reject(options_reading *r, const char *format, ...)
{
    va_list arguments;
    char message[1024];
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (r->report == NULL)
        program_fail(PROGRAM_USAGE, "%s", message);
    r->report(r->user, message);
    r->failed = true;
}

/* Returns the row with this name or, if name is NULL, with this letter. Sets *base to the settings of its group. */
static const nl_option *options_find(const options_reading *r, const char *name, size_t size, char letter, char **base)
{
    for (const options_group *group = options_groups(r->usage); group->rows != NULL; group++)
        for (const nl_option *row = group->rows; row->name != NULL; row++)
            if (name != NULL ? strlen(row->name) == size && memcmp(row->name, name, size) == 0
                             : row->letter == letter) {
                *base = r->base + group->offset;
                return row;
            }
    for (const nl_option *row = options_standard; row->name != NULL; row++)
        if (name != NULL ? strlen(row->name) == size && memcmp(row->name, name, size) == 0 : row->letter == letter)
            return row;
    return NULL;
}

static void options_apply(options_reading *r, const nl_option *row, char *base, const char *value)
{
    if (row == &options_standard[0]) {
        options_print_help(r->usage, value != NULL ? value : "", r->base);
    } else if (row == &options_standard[1]) {
        printf("%s (NetLogger) %s\n", options_name(r->usage), nl_version());
        exit(program_finish(PROGRAM_DONE));
    }
    size_t i = 0;
    while (i < r->given_count && r->given[i] != row)
        i++;
    if (i == r->given_count && i < OPTIONS_MAX)
        r->given[r->given_count++] = row;
    if (row->type == NL_OPTION_FLAG && value == NULL)
        value = "yes";
    if (row->takes_operands) {
        r->collector = row;
        r->collector_base = base;
    }
    if (!nl_option_set(row, base, value != NULL ? value : ""))
        options_reject(r, "--%s: %s", row->name, nl_error_message());
}

static void options_reject_unknown(options_reading *r, const char *word, size_t size)
{
    nl_option_nearest nearest = {0};
    char name[40], hint[64] = "";
    snprintf(name, sizeof name, "%.*s", (int)size, word);
    for (const options_group *group = options_groups(r->usage); group->rows != NULL; group++)
        nl_option_find_nearest(&nearest, group->rows, name);
    nl_option_find_nearest(&nearest, options_standard, name);
    if (nearest.name != NULL)
        snprintf(hint, sizeof hint, "did you mean --%s? ", nearest.name);
    options_reject(r, "--%.*s: unknown option; %ssee %s --help", (int)size, word, hint, options_name(r->usage));
}

/*
 * Reads --name or --name=value. `next` is the following argument, which may be the value. Returns the number of
 * arguments used.
 */
static int options_read_long(options_reading *r, const char *word, char *next)
{
    size_t size = strcspn(word, "=");
    char *base = NULL;
    const nl_option *row = options_find(r, word, size, 0, &base);
    const char *value = word[size] == '=' ? word + size + 1 : NULL;
    if (row == NULL) {
        options_reject_unknown(r, word, size);
        return 1;
    }
    bool takes_next = value == NULL && row->type != NL_OPTION_FLAG && !row->optional_value;
    if (row->type == NL_OPTION_FLAG && value != NULL)
        options_reject(r, "--%s: this option does not accept a value", row->name);
    else if (takes_next && next == NULL)
        options_reject(r, "--%s: missing value (%s)", row->name, options_value_name(row));
    else
        options_apply(r, row, base, takes_next ? next : value);
    return takes_next && next != NULL ? 2 : 1;
}

/* Reads -a, -abc or -aVALUE. Returns the number of arguments used. */
static int options_read_letters(options_reading *r, const char *letters, char *next)
{
    for (; *letters != '\0'; letters++) {
        char *base = NULL;
        const nl_option *row = options_find(r, NULL, 0, *letters, &base);
        if (row == NULL) {
            options_reject(r, "-%c: unknown option; see %s --help", *letters, options_name(r->usage));
            return 1;
        }
        if (row->type == NL_OPTION_FLAG || row->optional_value) {
            options_apply(r, row, base, NULL);
            continue;
        }
        if (letters[1] != '\0') {
            options_apply(r, row, base, letters + 1);
            return 1;
        }
        if (next == NULL) {
            options_reject(r, "-%c: missing value (%s)", *letters, options_value_name(row));
            return 1;
        }
        options_apply(r, row, base, next);
        return 2;
    }
    return 1;
}

static void options_read_environment(options_reading *r)
{
    for (const options_group *group = options_groups(r->usage); group->rows != NULL; group++)
        if (nl_options_read_environment(group->rows, r->base + group->offset) != NULL)
            options_reject(r, "%s", nl_error_message());
}

/* Reads the options and moves them before the operands. Returns the index of the first operand. */
static int options_read_arguments(options_reading *r, int argc, char **argv)
{
    char **operands = nl_memory_check(calloc((size_t)argc + 1, sizeof *operands));
    int count = 0, options = 1;
    for (int i = 1; i < argc;) {
        char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool ends = strcmp(word, "--") == 0;
        int size = 1;
        if (!ends && (word[0] != '-' || word[1] == '\0') && r->collector != NULL) {
            options_apply(r, r->collector, r->collector_base, word);
            argv[options++] = argv[i++];
        } else if (!ends && (word[0] != '-' || word[1] == '\0')) {
            operands[count++] = word;
            i++;
            ends = r->usage->first_operand_ends;
        } else {
            if (!ends)
                size = word[1] == '-' ? options_read_long(r, word + 2, next) : options_read_letters(r, word + 1, next);
            for (int k = 0; k < size; k++)
                argv[options++] = argv[i++];
        }
        while (ends && i < argc)
            operands[count++] = argv[i++];
    }
    memcpy(argv + options, operands, (size_t)count * sizeof *operands);
    free(operands);
    return options;
}

/* Checks that the command exists and accepts the given options. Reports a usage error otherwise. */
static void options_check_command(options_reading *r, const char *command)
{
    const options_command *c = r->usage->commands;
    char known[512] = "";
    for (; c->name != NULL && (command == NULL || strcmp(c->name, command) != 0); c++) {
        size_t size = strlen(known);
        snprintf(known + size, sizeof known - size, "%s%s", size > 0 ? ", " : "", c->name);
    }
    if (c->name == NULL) {
        if (command != NULL)
            options_reject(r, "%s: unknown command; the commands are %s", command, known);
        else if (!r->usage->optional_command)
            options_reject(r, "missing command; the commands are %s", known);
        return;
    }
    for (size_t i = 0; i < r->given_count; i++) {
        const char *commands = r->given[i]->commands;
        if (commands != NULL && !nl_option_list_has(commands, ' ', command, strlen(command)))
            options_reject(r, "--%s: the %s command does not have this option", r->given[i]->name, command);
    }
}

int options_parse_again(const options_usage *usage, int argc, char **argv, void *settings,
                        void (*report)(void *user, const char *message), void *user)
{
    options_reading r = {.usage = usage, .base = settings, .report = report, .user = user};
    for (const options_group *group = options_groups(usage); group->rows != NULL; group++) {
        const nl_option *row = nl_options_init(group->rows, r.base + group->offset);
        if (row != NULL)
            options_reject(&r, "--%s: default: %s", row->name, nl_error_message());
    }
    options_read_environment(&r);
    int first = options_read_arguments(&r, argc, argv);
    if (usage->commands != NULL)
        options_check_command(&r, first < argc ? argv[first] : NULL);
    else if (usage->operands == NULL && first < argc)
        options_reject(&r, "%s: unexpected argument; see %s --help", argv[first], options_name(usage));
    return r.failed ? -1 : first;
}

int options_parse(const options_usage *usage, int argc, char **argv, void *settings)
{
    return options_parse_again(usage, argc, argv, settings, NULL, NULL);
}
