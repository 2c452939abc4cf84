#include "config.h"

#include "transport/log_options.h"

#include "base/error.h"
#include "transport/dial.h"
#include "transport/writer.h"

#define COLLECTORS "x-netlog x-netlogs unix"

/*
 * Index 0 means that the option is not given. The values of nl_policy follow, and then the levels, beginning with
 * Emergency.
 */
#define POLICIES "|block|newest|oldest|Emergency|Alert|Error|Warning|Auth|Security|Usage|System|Important|Debug"

/* The index of a choice is odd if this choice switches the option on. */
#define SWITCH "no|yes|0|1|off|on|false|true"

enum { CLOCK_DEFAULT_S = 60 };

const nl_option nl_log_rows[] = {
    {.name = "policy",
     .type = NL_OPTION_CHOICE,
     .choices = POLICIES,
     .value = "block|newest|oldest|LEVEL",
     .initial = "(newest for logs to a collector, otherwise block)",
     NL_OPTION_MEMBER(nl_log_options, policy_choice),
     .help =
         "Action when a thread's ring buffer (ring) is full. NetLogger.Lost counts dropped events. With block, the new "
         "event waits; with newest, the log drops the new event; with oldest, the new event replaces the oldest events "
         "in the ring. With LEVEL, the log drops events less urgent than LEVEL while the ring is at least half full, "
         "and other events wait while the ring is full"},
    {.name = "block",
     .type = NL_OPTION_DURATION,
     .initial = "10s",
     NL_OPTION_MEMBER(nl_log_options, policy.block_ns),
     .help = "Maximum time that an event waits for space in a full ring. After this time, the log drops the event and "
             "all later events until the ring has space again"},
    {.name = "ring",
     .type = NL_OPTION_SIZE,
     .initial = "1m",
     .minimum = 64 << 10,
     .maximum = 1 << 30,
     NL_OPTION_MEMBER(nl_log_options, ring_size),
     .help = "Size of each thread's ring, rounded up to a power of two. The maximum size of an event is a quarter of "
             "the ring, but not more than 960k"},
    {.name = "spool",
     .value = "DIRECTORY",
     .is_path = true,
     .commands = COLLECTORS,
     NL_OPTION_MEMBER(nl_log_options, spool),
     .help = "Store records in DIRECTORY while the collector is unreachable or does not reply. The same process, or a "
             "later process of this user with the same URL, delivers these records. DIRECTORY must belong to this user "
             "or to root. Other users must not be able to write to it unless it has the sticky bit"},
    {.name = "spool_size",
     .type = NL_OPTION_SIZE,
     .commands = COLLECTORS,
     .initial = "256m",
     .minimum = 1 << 20,
     NL_OPTION_MEMBER(nl_log_options, spool_size),
     .help = "Maximum size of one process's records in the spool"},
    {.name = "spool_full",
     .type = NL_OPTION_CHOICE,
     .choices = "stop|oldest",
     .commands = COLLECTORS,
     .initial = "stop",
     NL_OPTION_MEMBER(nl_log_options, spool_oldest),
     .help = "Action when the spool is full. With stop, the spool accepts no more records, the rings fill, and policy= "
             "applies; with oldest, the log drops the oldest records, and NetLogger.Lost reports their COUNT and the "
             "REASON"},
    {.name = "fsync",
     .type = NL_OPTION_DURATION,
     .choices = "never|flush",
     .value = "never|flush|DURATION",
     .commands = COLLECTORS,
     .initial = "1s",
     .minimum = 1000000,
     NL_OPTION_MEMBER(nl_log_options, spool_sync_ns),
     .help = "When to sync records in the spool to disk. With flush, the library syncs these records before nl_flush "
             "and nl_close return; with DURATION, also at most DURATION after they were written. After a failed fsync, "
             "nl_flush and nl_close fail until the spool is delivered"},
    {.name = "backup",
     .value = "URL",
     NL_OPTION_MEMBER(nl_log_options, backup),
     .help =
         "Second destination, used while the first is unreachable. Both destinations receive records in the same "
         "format. If the second destination also fails, records go to the spool. To send blocks in a backup file to "
         "the collector, use nlrecover --dest. Write & in URL as %26"},
    {.name = "activation",
     .value = "FILE",
     .is_path = true,
     .environment = "NETLOGGER_ACTIVATION",
     NL_OPTION_MEMBER(nl_log_options, activation),
     .help = "Execute the commands in FILE (see nl_control) at the start and whenever the file changes"},
    {.name = "clock",
     .type = NL_OPTION_DURATION,
     .choices = "no",
     .value = "no|DURATION",
     .environment = "NETLOGGER_CLOCK",
     .initial = "(60s for logs to collectors, otherwise no)",
     .minimum = NL_NS_PER_SECOND / 10,
     NL_OPTION_MEMBER(nl_log_options, clock_ns),
     .help = "Interval at which the log records the quality of the host's clock in these events: ClockKernel, "
             "ClockTracking (if chronyd runs) and ClockOffset (for a collector in the format nlb). The log also "
             "records ClockStep whenever the clock is set"},
    {.name = "idle",
     .type = NL_OPTION_DURATION,
     .initial = "20ms",
     .minimum = 1000000,
     NL_OPTION_MEMBER(nl_log_options, idle_ns),
     .help = "Maximum time that the log's thread sleeps while nothing is logged; see nl_set_idle"},
    {.name = "quiet",
     .type = NL_OPTION_CHOICE,
     .choices = SWITCH,
     .value = "yes|no",
     .initial = "no",
     NL_OPTION_MEMBER(nl_log_options, quiet),
     .help =
         "Do not print a line on standard error when the log cannot open or reach the destination, or cannot deliver "
         "events; see nl_set_message_handler"},
    {0},
};

/* Sets members that depend on other members or on the URL's scheme. */
static void log_options_settle(nl_log_options *options, const nl_url *url)
{
    bool collector = nl_url_is_collector(url);
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
     .help = "Destination of logs that a program opens without a URL"},
    {.name = "on",
     .type = NL_OPTION_CHOICE,
     .choices = SWITCH,
     .value = "yes|no",
     .initial = "yes",
     .environment = "NETLOGGER_ON",
     NL_OPTION_MEMBER(nl_environment, on),
     .help = "Enable logging. If the value is no, 0, off or false, programs open no logs and write nothing"},
    {.name = "quiet_logs",
     .type = NL_OPTION_CHOICE,
     .choices = SWITCH,
     .value = "yes|no",
     .initial = "no",
     .environment = "NETLOGGER_QUIET",
     NL_OPTION_MEMBER(nl_environment, quiet),
     .help = "Same as quiet=yes in the URL of every log"},
    {.name = "level",
     .type = NL_OPTION_LEVEL,
     .initial = "Debug",
     .environment = "NETLOGGER_LEVEL",
     NL_OPTION_MEMBER(nl_environment, level),
     .help = "Initial level threshold of logs"},
    {.name = "host",
     .value = "NAME",
     .initial = "(the host's name)",
     .environment = "NETLOGGER_HOST",
     NL_OPTION_MEMBER(nl_environment, host),
     .help = "Value of HOST in records"},
    {.name = "shm",
     .value = "DIRECTORY",
     .initial = "/dev/shm",
     .environment = "NETLOGGER_SHM",
     NL_OPTION_MEMBER(nl_environment, shm),
     .help = "Directory in which programs keep events until they are sent"},
    {0},
};

bool nl_environment_read(nl_environment *environment)
{
    *environment = (nl_environment){0};
    nl_options_init(nl_environment_rows, environment);
    return nl_options_read_environment(nl_environment_rows, environment) == NULL;
}
