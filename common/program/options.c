#include "config.h"

#include "program/options.h"

#include "base/memory.h"
#include "program/encoding.h"
#include "program/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_WIDTH = 100, HELP_COLUMN = 30, OPTIONS_MAX = 128 };

typedef enum help_form { HELP_TEXT, HELP_JSON, HELP_WORDS } help_form;

/* A command line while it is read. */
typedef struct options_reading {
    const options_usage *usage;
    char *base; /* the settings */
    void (*report)(void *user, const char *message);
    void *user;
    bool failed;
    const nl_option *given[OPTIONS_MAX]; /* the rows that the command line has, once each */
    size_t given_count;
} options_reading;

static bool options_have_help(void *settings, const nl_option *row, const char *value)
{
    (void)settings, (void)row, (void)value;
    return true;
}

static const nl_option standard_options[] = {
    {.name = "help",
     .letter = 'h',
     .type = NL_OPTION_CHOICE,
     .choices = "json|words|urls",
     .optional_value = true,
     .set = options_have_help,
     .help = "Print this help; json: the options as JSON; words: words for shell completion; urls: the options of URLs "
             "and the environment variables"},
    {.name = "version", .letter = 'V', .type = NL_OPTION_FLAG, .set = options_have_help, .help = "Print the version"},
    {0},
};

static const options_group no_groups[] = {{0}};

static const options_group *options_groups(const options_usage *usage)
{
    return usage->groups != NULL ? usage->groups : no_groups;
}

static bool is_for_command_line(const nl_option *row)
{
    return row->places == 0 || (row->places & NL_OPTION_ON_COMMAND_LINE) != 0;
}

static const char *options_name(const options_usage *usage)
{
    return usage->name != NULL ? usage->name : program_get_name();
}

void options_fail(const char *format, ...)
{
    va_list arguments;
    char message[1024];
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    program_fail(PROGRAM_USAGE, "%s", message);
}

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

/* ---- help as text ---- */

/* Prints text in lines of at most HELP_WIDTH columns, of which the first begins at column and the others at indent. */
static void print_wrapped(const char *text, int column, int indent)
{
    while (*text != '\0') {
        int size = (int)strcspn(text, " \n");
        if (column + size > HELP_WIDTH && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", size, text);
        column += size;
        text += size;
        if (*text == '\n') {
            printf("\n%*s", text[1] != '\0' ? indent : 0, "");
            column = indent;
            text++;
        }
        for (; *text == ' '; text++, column++)
            if (column + (int)strcspn(text + 1, " \n") < HELP_WIDTH || column == indent)
                putchar(' ');
    }
}

static const char *value_name(const nl_option *row)
{
    static const char *const names[] = {
        [NL_OPTION_TEXT] = "TEXT",   [NL_OPTION_COPY] = "TEXT",   [NL_OPTION_FLAG] = "yes|no",
        [NL_OPTION_COUNT] = "COUNT", [NL_OPTION_SIZE] = "SIZE",   [NL_OPTION_DURATION] = "DURATION",
        [NL_OPTION_TIME] = "TIME",   [NL_OPTION_LEVEL] = "LEVEL", [NL_OPTION_CHOICE] = "CHOICE"};
    const char *choices = nl_option_choices(row);
    return row->value != NULL ? row->value : choices != NULL ? choices + (*choices == '|') : names[row->type];
}

/* Adds "; NOTE" to what is in parentheses behind an option's help. */
NL_PRINTF(2, 3)
static void add_note(nl_buffer *notes, const char *format, ...)
{
    va_list arguments;
    char note[512];
    va_start(arguments, format);
    size_t size = (size_t)vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    nl_buffer_append(notes, notes->size > 0 ? "; " : " (", 2);
    nl_buffer_append(notes, note, size < sizeof note ? size : sizeof note - 1);
}

/* An option's help with its default, bounds and variable. To be freed. */
static char *option_help(const nl_option *row, bool with_variable)
{
    nl_buffer text = {0}, notes = {0};
    char bound[NL_OPTION_VALUE_SIZE];
    if (row->commands != NULL) {
        for (const char *at = row->commands; *at != '\0'; at++)
            nl_buffer_append(&text, *at == ' ' ? ", " : at, *at == ' ' ? 2 : 1);
        nl_buffer_append(&text, ": ", 2);
    }
    nl_buffer_append(&text, row->help, strlen(row->help));
    if (row->initial != NULL && *row->initial == '(')
        add_note(&notes, "default: %.*s", (int)strlen(row->initial) - 2, row->initial + 1);
    else if (row->initial != NULL)
        add_note(&notes, "default %s", row->initial);
    if (row->environment != NULL && with_variable)
        add_note(&notes, "environment: %s", row->environment);
    if (row->minimum != 0 && row->type != NL_OPTION_FLAG)
        add_note(&notes, "minimum %s", nl_option_format_bound(row, row->minimum, bound));
    if (row->maximum != 0)
        add_note(&notes, "maximum %s", nl_option_format_bound(row, row->maximum, bound));
    if (row->repeatable)
        add_note(&notes, "repeatable");
    nl_buffer_append(&text, notes.data, notes.size);
    nl_buffer_append(&text, notes.size > 0 ? ")" : "", notes.size > 0 ? 1 : 0);
    nl_buffer_append(&text, "", 1);
    nl_buffer_free(&notes);
    return text.data;
}

/* How an option is given. */
typedef enum option_form { FORM_COMMAND_LINE, FORM_URL, FORM_ENVIRONMENT } option_form;

static void print_option(const nl_option *row, option_form form)
{
    char head[160];
    bool has_value = row->type != NL_OPTION_FLAG;
    int size = form == FORM_URL ? snprintf(head, sizeof head, "      %s=%s", row->name, value_name(row))
               : form == FORM_ENVIRONMENT
                   ? snprintf(head, sizeof head, "      %s=%s", row->environment, value_name(row))
                   : snprintf(head, sizeof head, "  %c%c%c --%s%s%s%s%s", row->letter != 0 ? '-' : ' ',
                              row->letter != 0 ? row->letter : ' ', row->letter != 0 ? ',' : ' ', row->name,
                              row->optional_value ? "[" : "", has_value ? "=" : "", has_value ? value_name(row) : "",
                              row->optional_value ? "]" : "");
    char *help = option_help(row, form != FORM_ENVIRONMENT);
    if (size + 2 > HELP_COLUMN)
        printf("%s\n%*s", head, HELP_COLUMN, "");
    else
        printf("%-*s", HELP_COLUMN, head);
    print_wrapped(help, HELP_COLUMN, HELP_COLUMN);
    putchar('\n');
    free(help);
}

static void print_usage_line(const options_usage *usage, bool first, const char *operands, int size)
{
    printf("%s %s [OPTION...]%s%.*s\n", first ? "Usage:" : "      ", options_name(usage), size > 0 ? " " : "", size,
           operands);
}

static void print_usage(const options_usage *usage)
{
    bool first = true;
    for (const options_command *c = usage->commands; c != NULL && c->name != NULL; c++, first = false) {
        char operands[200];
        int size = snprintf(operands, sizeof operands, "%s%s%s", c->name, c->operands != NULL ? " " : "",
                            c->operands != NULL ? c->operands : "");
        print_usage_line(usage, first, operands, size);
    }
    for (const char *at = usage->operands != NULL ? usage->operands : ""; *at != '\0' || first; first = false) {
        size_t size = strcspn(at, "\n");
        print_usage_line(usage, first, at, (int)size);
        at += size + (at[size] == '\n');
    }
}

static void print_groups(const options_group *groups, option_form form)
{
    const char *printed = "";
    for (; groups != NULL && groups->rows != NULL; groups++) {
        const char *title = groups->title != NULL ? groups->title : "Options";
        if (strcmp(title, printed) != 0)
            printf("\n%s:\n", title);
        printed = title;
        for (const nl_option *row = groups->rows; row->name != NULL; row++)
            if (form != FORM_COMMAND_LINE || is_for_command_line(row))
                print_option(row, form);
    }
}

static void print_help_text(const options_usage *usage)
{
    static const options_group standard[] = {{"Help", standard_options, 0}, {0}};
    print_usage(usage);
    print_wrapped(usage->summary, 0, 0);
    putchar('\n');
    if (usage->commands != NULL)
        printf("\nCommands:\n");
    for (const options_command *c = usage->commands; c != NULL && c->name != NULL; c++) {
        printf("  %-13s ", c->name);
        print_wrapped(c->help, 16, 16);
        putchar('\n');
    }
    print_groups(usage->groups, FORM_COMMAND_LINE);
    print_groups(standard, FORM_COMMAND_LINE);
    if (usage->urls != NULL)
        printf("\nURLs have options too: %s --help=urls lists them.\n", options_name(usage));
    if (usage->notes != NULL) {
        putchar('\n');
        print_wrapped(usage->notes, 0, 0);
        putchar('\n');
    }
}

static void print_help_urls(const options_usage *usage)
{
    print_groups(usage->urls, FORM_URL);
    print_groups(usage->variables, FORM_ENVIRONMENT);
}

/* ---- help for other programs ---- */

/* Prints "name": "value" with what separates it from the one before. */
static void print_member(const char *separator, const char *name, const char *value)
{
    nl_buffer text = {0};
    if (value == NULL)
        return;
    json_put_valid(&text, (nl_string){value, strlen(value)});
    printf("%s\"%s\":%.*s", separator, name, (int)text.size, text.data);
    nl_buffer_free(&text);
}

static void print_json_flag(const char *name, bool value)
{
    if (value)
        printf(",\"%s\":true", name);
}

/* The present value, or all values of a repeatable option. */
static void print_json_values(const nl_option *row, const void *settings)
{
    char text[NL_OPTION_TEXT_SIZE];
    const char *value;
    if (!row->repeatable) {
        print_member(",", "value", nl_option_get(row, settings, text));
        return;
    }
    printf(",\"values\":[");
    for (size_t i = 0; (value = nl_option_get_at(row, settings, i, text)) != NULL; i++) {
        nl_buffer quoted = {0};
        json_put_valid(&quoted, (nl_string){value, strlen(value)});
        printf("%s%.*s", i > 0 ? "," : "", (int)quoted.size, quoted.data);
        nl_buffer_free(&quoted);
    }
    putchar(']');
}

static void print_json_option(const nl_option *row, const void *settings, const char *title, bool first)
{
    char text[NL_OPTION_VALUE_SIZE], letter[2] = {row->letter};
    const char *choices = nl_option_choices(row);
    bool in_url = (row->places & NL_OPTION_IN_URL) != 0;
    print_member(first ? "{" : ",\n  {", "name", row->name);
    print_member(",", "letter", row->letter != 0 ? letter : NULL);
    print_member(",", "type", nl_option_type_name(row));
    print_member(",", "value_name", row->type == NL_OPTION_FLAG ? NULL : value_name(row));
    print_member(",", "group", title);
    if (row->initial != NULL && *row->initial == '(')
        print_member(",", "default_description", row->initial);
    else
        print_member(",", "default", row->initial);
    bool bounded = row->type == NL_OPTION_COUNT || row->type == NL_OPTION_SIZE || row->type == NL_OPTION_DURATION;
    if (bounded && (row->set == NULL || row->get != NULL))
        print_member(",", "minimum", nl_option_format_bound(row, row->minimum, text));
    print_member(",", "maximum", row->maximum != 0 ? nl_option_format_bound(row, row->maximum, text) : NULL);
    print_member(",", "choices", choices != NULL ? choices + (*choices == '|') : NULL);
    print_member(",", "environment", row->environment);
    print_member(",", in_url ? "schemes" : "commands", row->commands);
    print_json_flag("repeatable", row->repeatable);
    print_json_flag("optional_value", row->optional_value);
    print_json_flag("own_parser", row->set != NULL);
    print_json_flag("command_line", is_for_command_line(row));
    print_json_flag("url", in_url);
    print_json_flag("file", (row->places & NL_OPTION_IN_FILE) != 0);
    print_json_flag("reload", (row->places & NL_OPTION_ON_RELOAD) != 0);
    print_member(",", "help", row->help);
    if (settings != NULL)
        print_json_values(row, settings);
    putchar('}');
}

static void print_json_groups(const options_group *groups, const char *base, bool first)
{
    for (; groups != NULL && groups->rows != NULL; groups++)
        for (const nl_option *row = groups->rows; row->name != NULL; row++, first = false)
            print_json_option(row, base != NULL ? base + groups->offset : NULL, groups->title, first);
}

static void print_help_json(const options_usage *usage, char *base)
{
    if (usage->read_urls != NULL)
        usage->read_urls(base);
    print_member("{", "program", options_name(usage));
    print_member(",\n ", "version", nl_version());
    print_member(",\n ", "operands", usage->operands);
    print_member(",\n ", "summary", usage->summary);
    printf(",\n \"commands\":[");
    for (const options_command *c = usage->commands; c != NULL && c->name != NULL; c++) {
        print_member(c == usage->commands ? "{" : ",\n  {", "name", c->name);
        print_member(",", "operands", c->operands);
        print_member(",", "help", c->help);
        putchar('}');
    }
    printf("],\n \"options\":[");
    print_json_groups(options_groups(usage), base, true);
    print_json_groups((options_group[]){{"Help", standard_options, 0}, {0}}, NULL, usage->groups == NULL);
    printf("],\n \"url_options\":[");
    print_json_groups(usage->urls, usage->read_urls != NULL ? base : NULL, true);
    printf("],\n \"variables\":[");
    print_json_groups(usage->variables, NULL, true);
    printf("]}\n");
}

static void print_words_of(const options_group *groups)
{
    for (; groups->rows != NULL; groups++)
        for (const nl_option *row = groups->rows; row->name != NULL; row++)
            if (is_for_command_line(row)) {
                bool takes_value = row->type != NL_OPTION_FLAG && !row->optional_value;
                printf("--%s%s\t%s\t%s\n", row->name, takes_value ? "=" : "", row->choices != NULL ? row->choices : "",
                       row->help);
            }
}

/* A line for each word: WORD, a tab, the choices of its value, a tab, help. */
static void print_help_words(const options_usage *usage)
{
    for (const options_command *c = usage->commands; c != NULL && c->name != NULL; c++)
        printf("%s\t\t%s\n", c->name, c->help);
    print_words_of(options_groups(usage));
    print_words_of((options_group[]){{NULL, standard_options, 0}, {0}});
}

/* ---- reading ---- */

static void options_give_help(options_reading *r, const char *form)
{
    if (form == NULL || *form == '\0')
        print_help_text(r->usage);
    else if (strcmp(form, "json") == 0)
        print_help_json(r->usage, r->base);
    else if (strcmp(form, "words") == 0)
        print_help_words(r->usage);
    else if (strcmp(form, "urls") == 0)
        print_help_urls(r->usage);
    else
        program_fail(PROGRAM_USAGE, "--help: \"%s\" is not one of %s", form, standard_options[0].choices);
    exit(program_finish(PROGRAM_DONE));
}

/* The row of that name, or else of that letter; *base is what it sets. */
static const nl_option *options_find(const options_reading *r, const char *name, size_t size, char letter, char **base)
{
    for (const options_group *group = options_groups(r->usage); group->rows != NULL; group++)
        for (const nl_option *row = group->rows; row->name != NULL; row++)
            if (is_for_command_line(row) &&
                (name != NULL ? strlen(row->name) == size && memcmp(row->name, name, size) == 0
                              : row->letter == letter)) {
                *base = r->base + group->offset;
                return row;
            }
    for (const nl_option *row = standard_options; row->name != NULL; row++)
        if (name != NULL ? strlen(row->name) == size && memcmp(row->name, name, size) == 0 : row->letter == letter)
            return row;
    return NULL;
}

static void options_apply(options_reading *r, const nl_option *row, char *base, const char *value)
{
    if (row == &standard_options[0]) {
        options_give_help(r, value);
    } else if (row == &standard_options[1]) {
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
    if (!nl_option_set(row, base, value != NULL ? value : ""))
        options_reject(r, "--%s: %s", row->name, nl_error_message());
}

static void options_reject_unknown(options_reading *r, const char *word, size_t size)
{
    nl_option_nearest nearest = {0};
    char name[40], hint[64] = "";
    snprintf(name, sizeof name, "%.*s", (int)size, word);
    for (const options_group *group = options_groups(r->usage); group->rows != NULL; group++)
        nl_option_find_nearest(&nearest, group->rows, name, NL_OPTION_ON_COMMAND_LINE);
    nl_option_find_nearest(&nearest, standard_options, name, NL_OPTION_ON_COMMAND_LINE);
    if (nearest.name != NULL)
        snprintf(hint, sizeof hint, "did you mean --%s? ", nearest.name);
    options_reject(r, "--%.*s: unknown option; %ssee %s --help", (int)size, word, hint, options_name(r->usage));
}

/* --name or --name=value; next is what may be its value. Returns how many words of argv it was. */
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
        options_reject(r, "--%s: takes no value", row->name);
    else if (takes_next && next == NULL)
        options_reject(r, "--%s: missing value, %s", row->name, value_name(row));
    else
        options_apply(r, row, base, takes_next ? next : value);
    return takes_next && next != NULL ? 2 : 1;
}

/* -a, -abc or -aVALUE. Likewise. */
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
            options_reject(r, "-%c: missing value, %s", *letters, value_name(row));
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

/* Puts options before operands. Returns the place of the first operand. */
static int options_read_words(options_reading *r, int argc, char **argv)
{
    char **operands = nl_memory_check(calloc((size_t)argc + 1, sizeof *operands));
    int count = 0, options = 1;
    for (int i = 1; i < argc;) {
        char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool ends = strcmp(word, "--") == 0;
        int size = 1;
        if (!ends && (word[0] != '-' || word[1] == '\0')) {
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

/* Whether the command that was given exists and has the options that were given. */
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
            options_reject(r, "--%s: the command %s does not have this option", r->given[i]->name, command);
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
    int first = options_read_words(&r, argc, argv);
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
