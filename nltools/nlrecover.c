/* nlrecover: bring the events of killed processes to where they were going. */
#include "config.h"

#include "program/program.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>

static const struct argp_option options[] = {
    {"list", 'n', NULL, 0, "Say what is waiting, and change nothing", 0},
    {"output", 'o', "URL", 0, "Write there instead of where each log was going: a file, x-netlog://HOST, -", 0},
    {"everyone", 'a', NULL, 0, "Processes of all users (for root, and with --list or --output only)", 0},
    {"quiet", 'q', NULL, 0, "Say nothing of what went well", 0},
    {0}};

typedef struct arguments {
    nl_recover_options recover;
    bool quiet;
    uint64_t logs, records;
} arguments;

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case 'n':
        a->recover.list_only = true;
        return 0;
    case 'o':
        a->recover.destination = argument;
        return 0;
    case 'a':
        a->recover.everyone = true;
        return 0;
    case 'q':
        a->quiet = true;
        return 0;
    case ARGP_KEY_END:
        if (a->recover.everyone && a->recover.destination == NULL && !a->recover.list_only)
            argp_error(state, "--everyone wants --output, or --list: where a log was going is its owner's word");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Bring the events that killed or crashed processes had logged, and not sent yet, to where they were going."
        "\vThey wait in shared memory (/dev/shm, or $NETLOGGER_SHM); so do those of logs that could not be delivered "
        "when they were closed. What such logs have in a spool is delivered too; while the collector is away, "
        "everything is moved to the spool, and nlrecover exits with 1 and delivers it when it is called again. "
        "--list counts what waits there; more may be recovered, the log's own records of what was lost, or less, what "
        "the destination turns out to have already. Logs on standard output or error, a terminal or in memory go "
        "nowhere without --output. netlogd does all this by itself for its own user.",
};

static void report(void *user, const nl_recovered *what)
{
    arguments *a = user;
    a->logs++;
    a->records += what->records;
    const char *url = *what->url != '\0' ? what->url : "a destination too long to remember";
    if (what->status != NL_OK)
        program_error("%s (process %d), %" PRIu64 " event%s for %s: %s", what->prog, what->process, what->records,
                      what->records == 1 ? "" : "s", url, what->message);
    else if (!a->quiet)
        fprintf(stderr, "%s (process %d): %" PRIu64 " event%s %s %s%s%s\n", what->prog, what->process, what->records,
                what->records == 1 ? "" : "s", a->recover.list_only ? "waiting for" : "recovered, for", url,
                a->recover.destination != NULL ? ", to " : "",
                a->recover.destination != NULL ? a->recover.destination : "");
}

int main(int argc, char **argv)
{
    program_start("nlrecover", argv);
    arguments a = {.quiet = false};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    nl_status status = nl_recover(&a.recover, report, &a);
    if (status != NL_OK && a.logs == 0)
        program_error("%s", nl_error_message());
    if (!a.quiet && a.logs == 0 && status == NL_OK)
        fprintf(stderr, "nothing to recover\n");
    return program_finish(status == NL_OK ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
