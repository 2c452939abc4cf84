#include "config.h"

#include "settings.h"

#include "base/error.h"
#include "output/options.h"
#include "nats_reader.h"
#include "base/error.h"
#include "service/confine.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_DEFAULT "file:///dev/stderr"

void settings_init(settings *s)
{
    *s = (settings){.config.rows = settings_rows};
}

static void free_content(settings *s)
{
    for (size_t i = 0; i < s->listen_count; i++)
        listening_free(&s->listen[i]);
    free(s->listen);
    network_list_free(&s->allow);
    for (size_t i = 0; i < s->output_count; i++)
        free(s->outputs[i]);
    free(s->outputs);
    nl_options_free(settings_rows, s);
    listening_free(&s->metrics_place);
}

void settings_delete(settings *s)
{
    if (s != NULL)
        free_content(s);
    free(s);
}

bool settings_logs_to_stderr(const settings *s)
{
    return strcmp(s->log, LOG_DEFAULT) == 0;
}

static bool read_listening(const char *value, listening *l)
{
    nl_url *url = nl_url_parse(value);
    if (url == NULL)
        return false;
    const nl_scheme scheme = url->scheme;
    bool secure = scheme == NL_SCHEME_NETLOGS, inherited = scheme == NL_SCHEME_INHERITED, good;
    const char *problem = NULL;
    if (scheme == NL_SCHEME_NATS)
        good = (problem = nats_reader_check(url, &l->url)) == NULL || nl_error_false(NL_ERROR_INVALID, "%s", problem);
    else if (secure || inherited || scheme == NL_SCHEME_NETLOG || scheme == NL_SCHEME_UNIX || scheme == NL_SCHEME_UDP)
        good = listening_read(url, secure || inherited ? listening_hosts_rows : NULL, secure, inherited, l);
    else
        good =
            nl_error_false(NL_ERROR_INVALID,
                           "netlogd listens on x-netlog://HOST:PORT, x-netlogs://HOST:PORT?cert=FILE&key=FILE&ca=FILE, "
                           "x-netlog+udp://HOST:PORT, unix:PATH, inherited:NAME and nats://HOST/STREAM");
    nl_url_free(url);
    return good;
}

static bool add_listening(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    listening l = {0};
    (void)row;
    if (!read_listening(value, &l)) {
        listening_free(&l);
        return false;
    }
    if (l.url != NULL) {
        l.nats = program_copy(value);
    } else {
        l.url = program_copy(value);
        l.url[strcspn(l.url, "?")] = '\0';
    }
    l.text = program_copy(value);
    s->listen = realloc(s->listen, (s->listen_count + 1) * sizeof *s->listen);
    if (s->listen == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    s->listen[s->listen_count++] = l;
    return true;
}

static const char *get_listening(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const settings *s = from;
    (void)scratch;
    if (index >= s->listen_count)
        return NULL;
    /* The URL of NATS may have a password. */
    return s->listen[index].nats != NULL ? s->listen[index].url : s->listen[index].text;
}

static const char *get_allowed(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    return network_list_get(&((const settings *)from)->allow, index, scratch);
}

static bool add_output(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    output_options options;
    (void)row;
    if (output_options_parse(value, &options) != NL_OK)
        return false;
    output_options_free(&options);
    for (size_t i = 0; i < s->output_count; i++)
        if (strcmp(s->outputs[i], value) == 0)
            return true; /* given on the command line and in the file */
    s->outputs = realloc(s->outputs, (s->output_count + 1) * sizeof *s->outputs);
    if (s->outputs == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    s->outputs[s->output_count++] = program_copy(value);
    return true;
}

static const char *get_output(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const settings *s = from;
    (void)scratch;
    return index < s->output_count ? s->outputs[index] : NULL;
}

static bool set_copy(void *settings, const nl_option *row, const char *value)
{
    nl_option plain = *row;
    plain.set = NULL;
    return nl_option_set(&plain, settings, value);
}

static bool set_control(void *to, const nl_option *row, const char *value)
{
    nl_url *url = nl_url_parse(value);
    bool usable = url != NULL && url->scheme == NL_SCHEME_UNIX && url->option_count == 0;
    nl_url_free(url);
    return usable ? set_copy(to, row, value) : nl_error_false(NL_ERROR_INVALID, "use unix:PATH");
}

static bool set_metrics(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    char text[1024];
    if (strncmp(value, "http://", 7) != 0 || !listening_from_http(value, NULL, text, sizeof text))
        return nl_error_false(NL_ERROR_INVALID, "use http://HOST:PORT or http://HOST:PORT?names=NAME,...");
    nl_url *url = nl_url_parse(text);
    listening l = {.url = program_copy(text)};
    bool usable = url != NULL && listening_read(url, listening_names_rows, false, false, &l);
    nl_url_free(url);
    if (!usable) {
        listening_free(&l);
        return false;
    }
    l.url[strcspn(l.url, "?")] = '\0';
    listening_free(&s->metrics_place);
    s->metrics_place = l;
    return set_copy(s, row, value);
}

#define YEAR (365 * 86400 * NL_NS_PER_SECOND)

const nl_option settings_rows[] = {
    {.name = "listen",
     .value = "URL",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = add_listening,
     .get = get_listening,
     .initial = "(inherited:* where systemd opened sockets, else x-netlog://127.0.0.1:14830)",
     .help =
         "Where clients connect: x-netlog://HOST[:PORT] (the default port is 14830; 0 is any free port); "
         "x-netlogs://HOST[:PORT]?cert=FILE&key=FILE&ca=FILE, TLS; x-netlog+udp://HOST[:PORT], datagrams with whole "
         "lines; unix:PATH; inherited:NAME, a socket that systemd opened (* for all); or nats://HOST/STREAM, to read "
         "records from NATS JetStream (doc/nats.md)"},
    {.name = "output",
     .value = "FILE|FOLDER/|URL",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = add_output,
     .get = get_output,
     .initial = "(-, standard output)",
     .help = "Where records go: a file, to which netlogd appends; -, standard output; FOLDER/ or "
             "file:FOLDER/NAME-{N}.nlb?rotate_size=256m&rotate_time=1h, numbered files; x-netlog://HOST?spool=FOLDER "
             "(or x-netlogs, unix), another collector; x-syslog://FACILITY?spool=FOLDER; or "
             "nats://HOST/STREAM?spool=FOLDER, NATS JetStream (doc/nats.md)"},
    {.name = "allow",
     .value = "NETWORK",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = network_list_set,
     .get = get_allowed,
     NL_OPTION_MEMBER(settings, allow),
     .help = "Networks whose clients may connect: 10.0.0.0/8, fd00::/8, 192.0.2.7, with commas between; required to "
             "listen beyond loopback without client certificates"},
    {.name = "log",
     .type = NL_OPTION_COPY,
     .value = "URL",
     .initial = "file:///dev/stderr",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(settings, log),
     .help = "Where netlogd's own events go"},
    {.name = "level",
     .type = NL_OPTION_LEVEL,
     .initial = "Important",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, level),
     .help = "The threshold of netlogd's own events; Important is all but Debug"},
    {.name = "reject",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(settings, reject),
     .help = "Append malformed input to FILE, unchanged"},
    {.name = "fraction",
     .type = NL_OPTION_CHOICE,
     .choices = "decimal|microseconds",
     .initial = "decimal",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, fraction),
     .help = "How to read a time's fraction of fewer than six digits"},
    {.name = "max-record-size",
     .type = NL_OPTION_SIZE,
     .initial = "1m",
     .minimum = 1024,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, max_record_size),
     .help = "The maximum size of a record; a longer one is malformed"},
    {.name = "max-connections",
     .type = NL_OPTION_COUNT,
     .initial = "10000",
     .minimum = 1,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, max_connections),
     .help = "The maximum number of clients; one more replaces the client that has been silent longest, of the address "
             "that has most of them, or is turned away while all are busy"},
    {.name = "max-memory",
     .type = NL_OPTION_SIZE,
     .initial = "1g",
     .minimum = 1 << 20,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, max_memory),
     .help = "The maximum memory of all clients together for incomplete records and blocks, and for what subscribers "
             "have not read (half of it at most); beyond it, netlogd closes the clients whose large record has been "
             "incomplete longest, and subscribers miss records"},
    {.name = "max-per-address",
     .type = NL_OPTION_COUNT,
     .initial = "5000",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, max_per_address),
     .help = "The maximum number of clients from one address, or IPv6 network of 64 bits; one more replaces the one "
             "that has been silent longest; 0 sets no limit"},
    {.name = "max-rate",
     .type = NL_OPTION_COUNT,
     .initial = "0",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, max_rate),
     .help = "The maximum number of records per second from one client; netlogd reads a faster client later, which "
             "slows it down; 0 sets no limit"},
    {.name = "record-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "5m",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, record_s),
     .help = "Close a connection that takes longer for one record, or until its first record; 0 disables"},
    {.name = "idle-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "1d",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, idle_timeout_s),
     .help = "Close a connection that has been silent for so long; 0 disables"},
    {.name = "handshake-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "10s",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, handshake_s),
     .help = "Close a connection on which TLS has not begun, or whose request has not arrived, by then; 0 disables"},
    {.name = "stop-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "10s",
     .minimum = 1,
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, stop_s),
     .help = "The maximum time that stopping takes, besides writing to the disk: for what clients still send and "
             "subscribers read, and for what is on its way to others; the rest stays in the spool"},
    {.name = "activation",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(settings, activation),
     .help = "Send the commands in FILE (level, event, marker, and destination with another collector's URL) to the "
             "programs that log here in the binary format, now and whenever the file changes"},
    {.name = "subscribe",
     .type = NL_OPTION_CHOICE,
     .choices = "no|yes",
     .initial = "yes",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, subscribe),
     .help = "Whether clients may subscribe to the records as they come"},
    {.name = "subscriber-queue",
     .type = NL_OPTION_SIZE,
     .initial = "4m",
     .minimum = 4 << 10,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, subscriber_queue),
     .help = "The maximum that a slow subscriber may leave unread; it misses what comes then, and is told"},
    {.name = "max-subscribers",
     .type = NL_OPTION_COUNT,
     .initial = "1000",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(settings, max_subscribers),
     .help = "The maximum number of subscribers; each takes up to 100 KiB besides its queue, and with an expression of "
             "its own up to a microsecond of each record"},
    {.name = "control",
     .value = "unix:PATH",
     .type = NL_OPTION_COPY,
     .places = NL_OPTION_IN_DAEMON,
     .set = set_control,
     NL_OPTION_MEMBER(settings, control),
     .help = "The socket for netlogctl; only this user may open it"},
    {.name = "metrics",
     .value = "URL",
     .type = NL_OPTION_COPY,
     .places = NL_OPTION_IN_DAEMON,
     .set = set_metrics,
     NL_OPTION_MEMBER(settings, metrics),
     .help = "http://HOST:PORT, where Prometheus is answered GET /metrics; beyond loopback only with --allow. Requests "
             "must name this host by its address, its name, or one of ?names=NAME,..."},
    {.name = "recover",
     .type = NL_OPTION_DURATION,
     .initial = "5s",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(settings, recover_s),
     .help = "How often to look for events that killed processes of this user have left, and deliver them; 0 disables"},
    {.name = "confine",
     .type = NL_OPTION_CHOICE,
     .places = NL_OPTION_IN_DAEMON,
     .initial = "yes",
     .choices = "no|yes",
     NL_OPTION_MEMBER(settings, confine),
     .help = "Give up the system calls, and the rights to read and write files and to connect to ports, that this "
             "configuration does not need, by seccomp and Landlock"},
    {.name = "pid-file",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(settings, pid_file),
     .help = "Write the process number there"},
    {0},
};

void settings_add(settings *s, const char *name, const char *value)
{
    if (!nl_option_set(nl_option_find(settings_rows, name, NL_OPTION_IN_FILE), s, value))
        program_fail(PROGRAM_PROBLEM, "%s %s: %s", name, value, nl_error_message());
}

/* ---- the command line ---- */

static bool set_repair(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    (void)row, (void)value;
    s->verify = s->repair = true;
    return true;
}

const nl_option settings_command_rows[] = {
    CONFIG_FILE_ROW(settings, config),
    {.name = "foreground",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(settings, foreground),
     .help = "Do not go into the background"},
    {.name = "verify",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(settings, verify),
     .help = "Collect nothing: check every record of the files or folders, and print what is damaged or missing; exit "
             "with 1 if anything is"},
    {.name = "repair",
     .type = NL_OPTION_FLAG,
     .set = set_repair,
     .help = "As --verify, and move damaged parts of FILE into FILE.damaged, and rebuild FILE.index, its index by "
             "time, if it is not sound"},
    {.name = "seal-key",
     .value = "FILE",
     NL_OPTION_MEMBER(settings, seal_key),
     .help = "With --verify, check the seals of folders with the key in FILE, the one that --create-seal-key printed, "
             "and exit with 1 if anything was altered, added or removed after it was sealed"},
    {.name = "since",
     .type = NL_OPTION_TIME,
     NL_OPTION_MEMBER(settings, since_ns),
     .help = "With --seal-key, accept that files are gone that were sealed before this time"},
    {.name = "create-seal-key",
     .value = "FILE",
     NL_OPTION_MEMBER(settings, create_seal_key),
     .help = "Collect nothing: create a key in FILE, for an output's seal=FILE, and print it, for --seal-key"},
    {0},
};
