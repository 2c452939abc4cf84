/* nlkernel list: prints the events that this kernel offers, with their fields. */
#include "config.h"

#include "choice.h"
#include "command.h"
#include "rights.h"
#include "program/json_document.h"
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
     .value = "DIRECTORY",
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
    .notes = "A PATTERN is SYSTEM:EVENT, with the wildcards *, ? and [a-z] in either part, or the name of a system or "
             "an event. Every "
             "record also has CPU, PID and TID, and the thread's name as PROG.",
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

static void print_event(const kernel_event *event)
{
    printf("%s:%s\n", event->system, event->event);
    for (size_t i = 0; i < event->field_count; i++) {
        const event_field *field = &event->fields[i];
        printf("    %-20s %-6s  (%s %s)\n", field->name, type_name(field), field->type, field->kernel_name);
    }
}

static json_object *describe_event(const kernel_event *event)
{
    json_object *about = json_object_new_object(), *fields = json_object_new_array();
    json_object_object_add(about, "event", json_text(event->name));
    json_object_object_add(about, "id", json_object_new_int(event->id));
    json_object_object_add(about, "fields", fields);
    for (size_t i = 0; i < event->field_count; i++) {
        const event_field *field = &event->fields[i];
        json_object *entry = json_object_new_object();
        json_object_object_add(entry, "name", json_text(field->name));
        json_object_object_add(entry, "type", json_text(type_name(field)));
        json_object_object_add(entry, "kernel_name", json_text(field->kernel_name));
        json_object_object_add(entry, "kernel_type", json_text(field->type));
        json_object_array_add(fields, entry);
    }
    return about;
}

static bool choose_listed(const arguments *a, event_names *names)
{
    if (a->pattern_count == 0)
        return event_names_choose(names, "*");
    for (int i = 0; i < a->pattern_count; i++)
        if (!event_names_choose(names, a->patterns[i]))
            return false;
    return true;
}

static int print_events(const arguments *a, const event_names *names, const tracing *t)
{
    int status = PROGRAM_DONE;
    json_object *all = a->json ? json_object_new_array() : NULL;
    for (size_t i = 0; i < names->count; i++) {
        kernel_event event;
        if (!names->list[i].chosen)
            continue;
        if (!kernel_event_read(t, names->list[i].system, names->list[i].event, &event)) {
            program_print_error();
            status = PROGRAM_PROBLEM;
            continue;
        }
        if (a->json)
            json_object_array_add(all, describe_event(&event));
        else
            print_event(&event);
        kernel_event_free(&event);
    }
    return !a->json || json_document_write(all, stdout) ? status : PROGRAM_PROBLEM;
}

int command_list(int argc, char **argv)
{
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a), status = PROGRAM_PROBLEM;
    a.patterns = argv + first;
    a.pattern_count = argc - first;
    tracing t;
    event_names names = {0};
    rights_raise(); /* for tracefs, and safe, because the user cannot make `list` open other files */
    bool ok = tracing_open(&t, a.tracefs) && event_names_read(&names, &t);
    if (ok && choose_listed(&a, &names)) {
        status = print_events(&a, &names, &t);
    } else {
        program_print_error();
        status = ok ? PROGRAM_USAGE : PROGRAM_PROBLEM;
    }
    event_names_free(&names);
    tracing_close(&t);
    return status;
}
