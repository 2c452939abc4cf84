#include "config.h"

#include "transport/log_options.h"

#include "base/error.h"
#include "record/format.h"
#include "transport/dial.h"
#include "transport/writer_internal.h"

#include <string.h>

#define COLLECTORS "x-netlog x-netlogs unix"

/* Of nl_policy, and then the levels from Emergency on; index 0 stands for no choice. */
#define POLICIES "|block|newest|oldest|Emergency|Alert|Error|Warning|Auth|Security|Usage|System|Important|Debug"

enum { CLOCK_DEFAULT_S = 60 };

const nl_option nl_log_rows[] = {
    {.name = "policy",
     .type = NL_OPTION_CHOICE,
     .choices = POLICIES,
     .value = "block|newest|oldest|LEVEL",
     .places = NL_OPTION_IN_URL,
     .initial = "(newest to collectors, otherwise block)",
     NL_OPTION_MEMBER(nl_log_options, policy_choice),
     .help = "What happens to an event when its thread's ring is full: block: the event waits; newest: it is dropped; "
             "oldest: it replaces the oldest events in the ring; LEVEL: events that are less urgent are dropped as "
             "soon as the ring is half full, and the others wait. NetLogger.Lost counts dropped events"},
    {.name = "block",
     .type = NL_OPTION_DURATION,
     .places = NL_OPTION_IN_URL,
     .initial = "10s",
     NL_OPTION_MEMBER(nl_log_options, policy.block_ns),
     .help =
         "The longest time that an event waits for space in a full ring. After that it is dropped, and so are later "
         "events until the ring has space again"},
    {.name = "ring",
     .type = NL_OPTION_SIZE,
     .places = NL_OPTION_IN_URL,
     .initial = "1m",
     .minimum = 64 << 10,
     .maximum = 1 << 30,
     NL_OPTION_MEMBER(nl_log_options, ring_size),
     .help = "The size of each thread's ring, rounded up to a power of two. The largest event is a quarter of it, and "
             "at most 960k"},
    {.name = "spool",
     .value = "FOLDER",
     .is_path = true,
     .commands = COLLECTORS,
     .places = NL_OPTION_IN_URL,
     NL_OPTION_MEMBER(nl_log_options, spool),
     .help = "Keep records in FOLDER while the collector is away, for this process or the next one. FOLDER must belong "
             "to this user or to root, and other users must not be able to write to it, unless it has the sticky bit"},
    {.name = "spool_size",
     .type = NL_OPTION_SIZE,
     .commands = COLLECTORS,
     .places = NL_OPTION_IN_URL,
     .initial = "256m",
     .minimum = 1 << 20,
     NL_OPTION_MEMBER(nl_log_options, spool_size),
     .help = "The maximum size of one process's records in the spool"},
    {.name = "spool_full",
     .type = NL_OPTION_CHOICE,
     .choices = "stop|oldest",
     .commands = COLLECTORS,
     .places = NL_OPTION_IN_URL,
     .initial = "stop",
     NL_OPTION_MEMBER(nl_log_options, spool_oldest),
     .help = "What happens when the spool is full: stop: it keeps what it has, the rings fill, and policy= applies; "
             "oldest: the oldest records are dropped, and NetLogger.Lost gives their COUNT and the REASON"},
    {.name = "fsync",
     .type = NL_OPTION_DURATION,
     .choices = "never|flush",
     .value = "never|flush|DURATION",
     .commands = COLLECTORS,
     .places = NL_OPTION_IN_URL,
     .initial = "1s",
     .minimum = 1000000,
     NL_OPTION_MEMBER(nl_log_options, spool_sync_ns),
     .help =
         "When records in the spool are made safe against a crash of the machine: never; flush: before nl_flush and "
         "nl_close return; DURATION: then, and at most that long after they were written. After a failed fsync, these "
         "calls "
         "fail until the spool is delivered"},
    {.name = "backup",
     .value = "URL",
     .places = NL_OPTION_IN_URL,
     NL_OPTION_MEMBER(nl_log_options, backup),
     .help = "A second destination, used while the first is away. Write & in it as %26"},
    {.name = "activation",
     .value = "FILE",
     .is_path = true,
     .environment = "NETLOGGER_ACTIVATION",
     .places = NL_OPTION_IN_URL,
     NL_OPTION_MEMBER(nl_log_options, activation),
     .help = "Obey the commands in FILE (nl_control), now and whenever the file changes"},
    {.name = "clock",
     .type = NL_OPTION_DURATION,
     .choices = "no",
     .value = "no|DURATION",
     .environment = "NETLOGGER_CLOCK",
     .places = NL_OPTION_IN_URL,
     .initial = "(60s to collectors, otherwise no)",
     .minimum = NL_NS_PER_SECOND / 10,
     NL_OPTION_MEMBER(nl_log_options, clock_ns),
     .help =
         "How often the log records the quality of its host's clock, from its opening on: ClockKernel, "
         "ClockTracking where chronyd runs, ClockOffset to collectors with format=nlb, and ClockStep when the clock "
         "was set"},
    {.name = "idle",
     .type = NL_OPTION_DURATION,
     .places = NL_OPTION_IN_URL,
     .initial = "20ms",
     .minimum = 1000000,
     NL_OPTION_MEMBER(nl_log_options, idle_ns),
     .help = "The longest time that the log's thread sleeps while nothing is logged (nl_set_idle)"},
    {0},
};

/* Sets the members that follow from others, and the defaults that depend on the scheme. */
static void log_options_settle(nl_log_options *options, const nl_url *url)
{
    bool collector =
        nl_option_list_has(COLLECTORS, ' ', nl_scheme_name(url->scheme), strlen(nl_scheme_name(url->scheme)));
    int choice = options->policy_choice;
    if (choice == 0)
        options->policy.kind = collector ? NL_POLICY_NEWEST : NL_POLICY_BLOCK;
    else if (choice <= NL_POLICY_LEVEL)
        options->policy.kind = (nl_policy)(choice - 1);
    else
        options->policy =
            (nl_ring_policy){NL_POLICY_LEVEL, options->policy.block_ns, (nl_level)(choice - NL_POLICY_LEVEL)};
    size_t size = 1;
    while (size < options->ring_size)
        size *= 2;
    options->ring_size = size;
    if (options->clock_ns == 0 && collector)
        options->clock_ns = CLOCK_DEFAULT_S * NL_NS_PER_SECOND;
    nl_writer_options_settle(&options->writer, url);
}

nl_status nl_log_options_read(nl_log_options *options, const nl_url *url, bool environment)
{
    nl_dialer_options tls = {0};
    *options = (nl_log_options){0};
    nl_options_init(nl_writer_rows, &options->writer);
    nl_options_init(nl_log_rows, options);
    if (environment && nl_options_read_environment(nl_log_rows, options) != NULL)
        return NL_FAILED;
    nl_status status = nl_url_read_options(
        url,
        (const nl_url_rows[]){{nl_log_rows, options}, {nl_writer_rows, &options->writer}, {nl_dialer_rows, &tls}, {0}});
    if (status != NL_OK)
        return nl_error_prepend("open %s", url->text);
    log_options_settle(options, url);
    return NL_OK;
}

/* ---- environment ---- */

const nl_option nl_environment_rows[] = {
    {.name = "destination",
     .value = "URL",
     .environment = "NETLOGGER_DEST",
     NL_OPTION_MEMBER(nl_environment, destination),
     .help = "The destination of logs that the program opens without a URL"},
    {.name = "on",
     .type = NL_OPTION_CHOICE,
     .choices = "no|yes|0|1|off|on|false|true",
     .value = "yes|no",
     .initial = "yes",
     .environment = "NETLOGGER_ON",
     NL_OPTION_MEMBER(nl_environment, on),
     .help = "With no, 0, off or false, programs open no logs and write nothing"},
    {.name = "level",
     .type = NL_OPTION_LEVEL,
     .initial = "Debug",
     .environment = "NETLOGGER_LEVEL",
     NL_OPTION_MEMBER(nl_environment, level),
     .help = "The threshold that logs start with"},
    {.name = "host",
     .value = "NAME",
     .initial = "(the host's name)",
     .environment = "NETLOGGER_HOST",
     NL_OPTION_MEMBER(nl_environment, host),
     .help = "The value of HOST in records"},
    {.name = "shm",
     .value = "FOLDER",
     .initial = "/dev/shm",
     .environment = "NETLOGGER_SHM",
     NL_OPTION_MEMBER(nl_environment, shm),
     .help = "Where programs keep events until they are sent"},
    {0},
};

bool nl_environment_read(nl_environment *environment)
{
    *environment = (nl_environment){0};
    nl_options_init(nl_environment_rows, environment);
    return nl_options_read_environment(nl_environment_rows, environment) == NULL;
}
