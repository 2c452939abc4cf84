/* nlkernel live: events into a log as libnetlogger has them, which may be a collector. */
#include "config.h"

#include "command.h"
#include "session.h"

typedef struct arguments {
    recording_options recording;
    const char *destination;
} arguments;

enum { OPTION_DEST = 0x1000 };

static const struct argp_option options[] = {
    {"dest", OPTION_DEST, "URL", 0,
     "Log there: x-netlog://HOST, FILE, - and whatever a log's URL may be (default $NETLOGGER_DEST)", 0},
    {0},
};

static const struct argp_child children[] = {{&recording_argp, 0, "", 1}, {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->recording;
        return 0;
    case OPTION_DEST:
        a->destination = argument;
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
    return sink_open_log(s, a->destination);
}

int command_live(int argc, char **argv)
{
    arguments a = {0};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
    int status = session_run(&a.recording, open_sink, &a);
    recording_options_free(&a.recording);
    return status;
}
