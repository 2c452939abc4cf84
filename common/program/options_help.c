/* Prints the forms of --help, which are text, JSON, the options of URLs, and words for shell completion. */
#include "config.h"

#include "base/text.h"
#include "program/options_help.h"

#include "program/json_document.h"
#include "program/program.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_WIDTH = 100, HELP_COLUMN = 30 };

static bool options_have_help(void *settings, const nl_option *row, const char *value)
{
    (void)settings, (void)row, (void)value;
    return true;
}

const nl_option options_standard[] = {
    {.name = "help",
     .letter = 'h',
     .type = NL_OPTION_CHOICE,
     .choices = "json|words|urls",
     .optional_value = true,
     .set = options_have_help,
     .help = "Print this help. With json, print the options as JSON; with words, print the words for shell completion; "
             "with urls, print the URL options and the environment variables"},
    {.name = "version", .letter = 'V', .type = NL_OPTION_FLAG, .set = options_have_help, .help = "Print the version"},
    {0},
};

static const options_group standard_groups[] = {{"Help", options_standard, 0}, {0}};
static const options_group no_groups[] = {{0}};

const options_group *options_groups(const options_usage *usage)
{
    return usage->groups != NULL ? usage->groups : no_groups;
}

const char *options_name(const options_usage *usage)
{
    return usage->name != NULL ? usage->name : program_get_name();
}

/* ---- text ---- */

/*
 * Prints text in lines of at most HELP_WIDTH columns. The first line begins at column, and the other lines at
 * indent.
 */
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

const char *options_value_name(const nl_option *row)
{
    static const char *const names[] = {
        [NL_OPTION_TEXT] = "TEXT",   [NL_OPTION_COPY] = "TEXT",   [NL_OPTION_FLAG] = "yes|no",
        [NL_OPTION_COUNT] = "COUNT", [NL_OPTION_SIZE] = "SIZE",   [NL_OPTION_DURATION] = "DURATION",
        [NL_OPTION_TIME] = "TIME",   [NL_OPTION_LEVEL] = "LEVEL", [NL_OPTION_CHOICE] = "CHOICE"};
    const char *choices = nl_option_choices(row);
    return row->value != NULL ? row->value : choices != NULL ? choices + (*choices == '|') : names[row->type];
}

NL_PRINTF(2, 3)
static void add_note(nl_buffer *notes, const char *format, ...)
{
    va_list arguments;
    char note[512];
    va_start(arguments, format);
    size_t size = (size_t)vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    if (notes->size > 0)
        nl_buffer_append(notes, "; ", 2);
    nl_buffer_append(notes, note, size < sizeof note ? size : sizeof note - 1);
}

/* Returns an option's help with its default, its bounds and its environment variable. The caller frees it. */
static char *option_help(const nl_option *row, bool with_variable)
{
    nl_buffer text = {0}, notes = {0};
    char bound[NL_OPTION_VALUE_SIZE];
    if (row->commands != NULL) {
        for (const char *at = row->commands; *at != '\0'; at++)
            nl_buffer_append(&text, *at == ' ' ? ", " : at, *at == ' ' ? 2 : 1);
        nl_buffer_append(&text, ": ", 2);
    }
    nl_buffer_append_text(&text, row->help);
    /*
     * If the help has several sentences, the notes are a sentence, because parentheses would seem to belong to the last
     * sentence.
     */
    bool sentence = strstr(row->help, ". ") != NULL || strstr(row->help, "; ") != NULL;
    const char *colon = sentence ? ":" : "";
    if (row->initial != NULL && *row->initial == '(')
        add_note(&notes, "default: %.*s", (int)strlen(row->initial) - 2, row->initial + 1);
    else if (row->initial != NULL)
        add_note(&notes, "default%s %s", colon, row->initial);
    if (row->environment != NULL && with_variable)
        add_note(&notes, "environment: %s", row->environment);
    if (row->minimum != 0 && row->type != NL_OPTION_FLAG)
        add_note(&notes, "minimum%s %s", colon, nl_option_format_bound(row, row->minimum, bound));
    if (row->maximum != 0)
        add_note(&notes, "maximum%s %s", colon, nl_option_format_bound(row, row->maximum, bound));
    if (row->repeatable)
        add_note(&notes, "repeatable");
    if (notes.size > 0) {
        nl_buffer_append(&text, sentence ? ". " : " (", 2);
        if (sentence)
            notes.data[0] = (char)toupper((unsigned char)notes.data[0]);
        nl_buffer_append(&text, notes.data, notes.size);
        nl_buffer_append(&text, ")", sentence ? 0 : 1);
    }
    nl_buffer_append(&text, "", 1);
    nl_buffer_free(&notes);
    return text.data;
}

typedef enum option_form { FORM_COMMAND_LINE, FORM_URL, FORM_ENVIRONMENT } option_form;

static void print_option(const nl_option *row, option_form form)
{
    char head[160];
    bool has_value = row->type != NL_OPTION_FLAG;
    int size = form == FORM_URL ? snprintf(head, sizeof head, "      %s=%s", row->name, options_value_name(row))
               : form == FORM_ENVIRONMENT
                   ? snprintf(head, sizeof head, "      %s=%s", row->environment, options_value_name(row))
                   : snprintf(head, sizeof head, "  %c%c%c --%s%s%s%s%s", row->letter != 0 ? '-' : ' ',
                              row->letter != 0 ? row->letter : ' ', row->letter != 0 ? ',' : ' ', row->name,
                              row->optional_value ? "[" : "", has_value ? "=" : "",
                              has_value ? options_value_name(row) : "", row->optional_value ? "]" : "");
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
            print_option(row, form);
    }
}

static void print_help_text(const options_usage *usage)
{
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
    print_groups(standard_groups, FORM_COMMAND_LINE);
    if (usage->urls != NULL)
        printf("\n%s --help=urls lists the URL options.\n", options_name(usage));
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

/* ---- JSON ---- */

static void add_member(json_object *object, const char *name, const char *value)
{
    if (value != NULL)
        json_object_object_add(object, name, json_text(value));
}

static void add_flag(json_object *object, const char *name, bool value)
{
    if (value)
        json_object_object_add(object, name, json_object_new_boolean(true));
}

/* Adds the current value, or all values of a repeatable option. */
static void add_values(json_object *object, const nl_option *row, const void *settings)
{
    char text[NL_OPTION_TEXT_SIZE];
    const char *value;
    if (!row->repeatable) {
        add_member(object, "value", nl_option_get(row, settings, text));
        return;
    }
    json_object *values = json_object_new_array();
    for (size_t i = 0; (value = nl_option_get_at(row, settings, i, text)) != NULL; i++)
        json_object_array_add(values, json_text(value));
    json_object_object_add(object, "values", values);
}

static json_object *describe_option(const nl_option *row, option_form form, const options_group *group, bool in_file,
                                    const void *settings)
{
    json_object *object = json_object_new_object();
    char text[NL_OPTION_VALUE_SIZE], letter[2] = {row->letter};
    const char *choices = nl_option_choices(row);
    bool is_described = row->initial != NULL && *row->initial == '(';
    bool is_bounded = row->type == NL_OPTION_COUNT || row->type == NL_OPTION_SIZE || row->type == NL_OPTION_DURATION;
    add_member(object, "name", row->name);
    add_member(object, "letter", row->letter != 0 ? letter : NULL);
    add_member(object, "type", nl_option_type_name(row));
    add_member(object, "value_name", row->type == NL_OPTION_FLAG ? NULL : options_value_name(row));
    add_member(object, "group", group->title);
    add_member(object, is_described ? "default_description" : "default", row->initial);
    if (is_bounded && (row->set == NULL || row->get != NULL))
        add_member(object, "minimum", nl_option_format_bound(row, row->minimum, text));
    add_member(object, "maximum", row->maximum != 0 ? nl_option_format_bound(row, row->maximum, text) : NULL);
    add_member(object, "choices", choices != NULL ? choices + (*choices == '|') : NULL);
    add_member(object, "environment", row->environment);
    add_member(object, form == FORM_URL ? "schemes" : "commands", row->commands);
    add_flag(object, "repeatable", row->repeatable);
    add_flag(object, "optional_value", row->optional_value);
    add_flag(object, "own_parser", row->set != NULL);
    add_flag(object, "command_line", form == FORM_COMMAND_LINE);
    add_flag(object, "url", form == FORM_URL);
    add_flag(object, "file", in_file);
    add_flag(object, "reload", row->on_reload);
    add_member(object, "help", row->help);
    if (settings != NULL)
        add_values(object, row, (const char *)settings + group->offset);
    return object;
}

/* Adds the options of the groups. If settings is NULL, omits their values. */
static void describe_groups(json_object *options, const options_usage *usage, option_form form,
                            const options_group *groups, const void *settings)
{
    for (; groups != NULL && groups->rows != NULL; groups++)
        for (const nl_option *row = groups->rows; row->name != NULL; row++)
            json_object_array_add(options,
                                  describe_option(row, form, groups, groups->rows == usage->file_rows, settings));
}

static void print_help_json(const options_usage *usage, void *settings)
{
    json_object *document = json_object_new_object(), *commands = json_object_new_array(),
                *options = json_object_new_array(), *url_options = json_object_new_array(),
                *variables = json_object_new_array();
    if (usage->read_urls != NULL)
        usage->read_urls(settings);
    for (const options_command *c = usage->commands; c != NULL && c->name != NULL; c++) {
        json_object *command = json_object_new_object();
        add_member(command, "name", c->name);
        add_member(command, "operands", c->operands);
        add_member(command, "help", c->help);
        json_object_array_add(commands, command);
    }
    describe_groups(options, usage, FORM_COMMAND_LINE, options_groups(usage), settings);
    describe_groups(options, usage, FORM_COMMAND_LINE, standard_groups, NULL);
    describe_groups(url_options, usage, FORM_URL, usage->urls, usage->read_urls != NULL ? settings : NULL);
    describe_groups(variables, usage, FORM_ENVIRONMENT, usage->variables, NULL);
    add_member(document, "program", options_name(usage));
    add_member(document, "version", nl_version());
    add_member(document, "operands", usage->operands);
    add_member(document, "summary", usage->summary);
    json_object_object_add(document, "commands", commands);
    json_object_object_add(document, "options", options);
    json_object_object_add(document, "url_options", url_options);
    json_object_object_add(document, "variables", variables);
    json_document_write(document, stdout);
}

/* ---- words ---- */

static void print_words_of(const options_group *groups)
{
    for (; groups->rows != NULL; groups++)
        for (const nl_option *row = groups->rows; row->name != NULL; row++) {
            bool takes_value = row->type != NL_OPTION_FLAG && !row->optional_value;
            printf("--%s%s\t%s\t%s\n", row->name, takes_value ? "=" : "", row->choices != NULL ? row->choices : "",
                   row->help);
        }
}

/* Prints a line for each word. The line has WORD, a tab, the choices of its value, a tab, and the help text. */
static void print_help_words(const options_usage *usage)
{
    for (const options_command *c = usage->commands; c != NULL && c->name != NULL; c++)
        printf("%s\t\t%s\n", c->name, c->help);
    print_words_of(options_groups(usage));
    print_words_of(standard_groups);
}

void options_print_help(const options_usage *usage, const char *form, void *settings)
{
    if (*form == '\0')
        print_help_text(usage);
    else if (strcmp(form, "json") == 0)
        print_help_json(usage, settings);
    else if (strcmp(form, "words") == 0)
        print_help_words(usage);
    else if (strcmp(form, "urls") == 0)
        print_help_urls(usage);
    else
        program_fail(PROGRAM_USAGE, "--help: \"%s\" is not one of %s", form, options_standard[0].choices);
    exit(program_finish(PROGRAM_DONE));
}
