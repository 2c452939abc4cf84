/* nlkernel live: events into a log as libnetlogger has them, which may be a collector. */
#include "config.h"

#include "command.h"
#include "schema.h"
#include "session.h"

#include "base/program_memory.h"

#include <stdlib.h>

typedef struct arguments {
    recording_options recording;
    const char *destination;
    const char *rules;       /* a schema: only what its rules make is logged; NULL: the events themselves are */
    const char **parameters; /* of it, NULL at the end; NULL: none */
    size_t parameter_count;
    schema schema;
} arguments;

enum { OPTION_DEST = 0x1000, OPTION_RULES, OPTION_SET };

static const struct argp_option options[] = {
    {"dest", OPTION_DEST, "URL", 0,
     "Log there: x-netlog://HOST, FILE, - and whatever a log's URL may be (default $NETLOGGER_DEST)", 0},
    {"rules", OPTION_RULES, "SCHEMA", 0,
     "Log what the rules of SCHEMA make of its events, instead of these: a name (nlkernel schema list), or a path with "
     "a / in it",
     0},
    {"set", OPTION_SET, "NAME=VALUE", 0, "A parameter of the rules; again for more", 0},
    {0},
};

static const struct argp_child children[] = {{&recording_argp, 0, "", 1}, {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->recording;
        a->recording.events_elsewhere = true;
        return 0;
    case OPTION_DEST:
        a->destination = argument;
        return 0;
    case OPTION_RULES:
        a->rules = argument;
        return 0;
    case OPTION_SET:
        a->parameters = reallocarray(a->parameters, a->parameter_count + 2, sizeof *a->parameters);
        PROGRAM_REQUIRE(a->parameters != NULL, "out of memory");
        a->parameters[a->parameter_count++] = argument;
        a->parameters[a->parameter_count] = NULL;
        return 0;
    case ARGP_KEY_END:
        if (a->recording.pattern_count == 0 && a->rules == NULL)
            argp_error(state, "no event is given: -e sched:sched_switch, for one; nlkernel list shows what there is");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "[-- COMMAND...]",
    .doc =
        "Log the kernel's events as they come, to a collector for one, until --duration is over, COMMAND has ended, or "
        "Ctrl-C."
        "\vExample: nlkernel live -e tcp:tcp_retransmit_skb --dest 'x-netlog://HOST?format=nlb'\n\n"
        "Records are those of nlkernel record. The log has the collector's usual policy: what there is no room for "
        "is dropped and counted; ?policy=block makes the kernel's buffers wait instead, and count what they lose.",
};

static bool open_sink(sink *s, const void *user)
{
    const arguments *a = user;
    nl_synthesis *rules = a->rules != NULL ? nl_synthesis_read(a->schema.path, a->parameters) : NULL;
    if ((a->rules != NULL && rules == NULL) || !sink_open_log(s, a->destination)) {
        nl_synthesis_free(rules);
        return false;
    }
    if (rules != NULL)
        sink_apply(s, rules);
    return true;
}

int command_live(int argc, char **argv)
{
    arguments a = {0};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
    int status = PROGRAM_USAGE;
    if (a.rules != NULL && !(schema_read(&a.schema, a.rules, a.parameters) && schema_choose(&a.schema, &a.recording)))
        program_error("%s", nl_error_message());
    else
        status = session_run(&a.recording, open_sink, &a);
    schema_free(&a.schema);
    free(a.parameters);
    recording_options_free(&a.recording);
    return status;
}
