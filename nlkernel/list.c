/* nlkernel list: what this kernel offers, with its fields. */
#include "config.h"

#include "choice.h"
#include "command.h"
#include "json.h"
#include "rights.h"
#include "program/program.h"

#include <stdio.h>

typedef struct arguments {
    const char *tracefs;
    bool json;
    char **patterns;
    int pattern_count;
} arguments;

static const nl_option options[] = {
    {.name = "json", .letter = 'j', .type = NL_OPTION_FLAG, NL_OPTION_MEMBER(arguments, json), .help = "Print JSON"},
    {.name = "tracefs",
     .value = "FOLDER",
     .initial = "(detected)",
     NL_OPTION_MEMBER(arguments, tracefs),
     .help = "Mount point of tracefs"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel list",
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "[PATTERN...]",
    .summary = "List the events that this kernel offers, with the names that their fields have in records.",
    .notes = "A PATTERN is SYSTEM:EVENT, with * ? [a-z] in either, or the name of a system or an event. Every record "
             "also has CPU, PID and TID, and the thread's name as PROG.",
};

static const char *type_name(const event_field *field)
{
    static const char *const names[] = {[NL_TYPE_STRING] = "string",
                                        [NL_TYPE_INT] = "int",
                                        [NL_TYPE_UINT] = "uint",
                                        [NL_TYPE_DOUBLE] = "double",
                                        [NL_TYPE_BOOL] = "bool"};
    return names[event_field_type(field)];
}

static void print_text(const kernel_event *event)
{
    printf("%s:%s\n", event->system, event->event);
    for (size_t i = 0; i < event->field_count; i++) {
        const event_field *field = &event->fields[i];
        printf("    %-20s %-6s  (%s %s)\n", field->name, type_name(field), field->type, field->kernel_name);
    }
}

static void print_json(const kernel_event *event, bool first)
{
    printf("%s{\"event\":", first ? "" : ",\n ");
    json_print_string(event->name);
    printf(",\"id\":%d,\"fields\":[", event->id);
    for (size_t i = 0; i < event->field_count; i++) {
        const event_field *field = &event->fields[i];
        printf("%s{\"name\":", i == 0 ? "" : ",");
        json_print_string(field->name);
        printf(",\"type\":\"%s\",\"kernel_name\":", type_name(field));
        json_print_string(field->kernel_name);
        printf(",\"kernel_type\":");
        json_print_string(field->type);
        putchar('}');
    }
    printf("]}");
}

static bool choose(const arguments *a, event_names *names)
{
    if (a->pattern_count == 0)
        return event_names_choose(names, "*");
    for (int i = 0; i < a->pattern_count; i++)
        if (!event_names_choose(names, a->patterns[i]))
            return false;
    return true;
}

static int print(const arguments *a, const event_names *names, const tracing *t)
{
    int status = PROGRAM_DONE;
    bool first = true;
    if (a->json)
        putchar('[');
    for (size_t i = 0; i < names->count; i++) {
        kernel_event event;
        if (!names->list[i].chosen)
            continue;
        if (!kernel_event_read(t, names->list[i].system, names->list[i].event, &event)) {
            program_error("%s", nl_error_message());
            status = PROGRAM_PROBLEM;
            continue;
        }
        if (a->json)
            print_json(&event, first);
        else
            print_text(&event);
        first = false;
        kernel_event_free(&event);
    }
    if (a->json)
        printf("]\n");
    return status;
}

int command_list(int argc, char **argv)
{
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    a.patterns = argv + first;
    a.pattern_count = argc - first;
    tracing t;
    event_names names = {0};
    rights_raise(); /* it reads nothing but tracefs */
    if (!tracing_open(&t, a.tracefs)) {
        program_error("%s", nl_error_message());
        return PROGRAM_PROBLEM;
    }
    int status = PROGRAM_PROBLEM;
    if (!event_names_read(&names, &t)) {
        program_error("%s", nl_error_message());
    } else if (!choose(&a, &names)) {
        program_error("%s", nl_error_message());
        status = PROGRAM_USAGE;
    } else {
        status = print(&a, &names, &t);
    }
    event_names_free(&names);
    tracing_close(&t);
    return status;
}
