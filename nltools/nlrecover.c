/* nlrecover: bring the events of killed processes to where they were going. */
#include "config.h"

#include "program/program.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct arguments {
    nl_recover_options recover;
    bool quiet;
    uint64_t logs, records;
} arguments;

static const nl_option options[] = {
    {.name = "list",
     .letter = 'l',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, recover.list_only),
     .help = "Print what is waiting and change nothing"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     NL_OPTION_MEMBER(arguments, recover.destination),
     .help = "Write there instead of to each log's own destination: a file, x-netlog://HOST, or -"},
    {.name = "everyone",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, recover.everyone),
     .help = "Recover the processes of all users; for root, and only with --list or --dest"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, quiet),
     .help = "Print only problems"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .summary = "Deliver the events that killed or crashed processes had logged but not yet sent.",
    .notes = "The events wait in shared memory: /dev/shm, or $NETLOGGER_SHM. So do the events of logs that could not "
             "be delivered when they were closed. nlrecover also delivers what such logs have in a spool. While the "
             "collector is away, nlrecover moves everything to the spool and exits with 1; call it again later. --list "
             "counts what waits there; nlrecover may recover more (records of what was lost), or less (what the "
             "destination already has). Logs on standard output or error, on a terminal or in memory need --dest. "
             "netlogd recovers the events of its own user by itself.",
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
    program_start("nlrecover");
    arguments a = {.quiet = false};
    options_parse(&usage, argc, argv, &a);
    if (a.recover.everyone && a.recover.destination == NULL && !a.recover.list_only)
        options_fail("--everyone: needs --dest or --list; only its owner may choose a log's own destination");
    nl_status status = nl_recover(&a.recover, report, &a);
    if (status != NL_OK && a.logs == 0)
        program_error("%s", nl_error_message());
    if (!a.quiet && a.logs == 0 && status == NL_OK)
        fprintf(stderr, "nothing to recover\n");
    return program_finish(status == NL_OK ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
