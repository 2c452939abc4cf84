#include "config.h"

#include "settings.h"

#include "base/error.h"
#include "output/options.h"
#include "nats_reader.h"
#include "program/program.h"
#include "base/size.h"
#include "service/confine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_DEFAULT "file:///dev/stderr"

void settings_init(settings *s)
{
    *s = (settings){0};
}

static void free_listening(listening *l)
{
    free(l->url);
    free(l->nats);
    nl_tls_free(l->tls);
}

static void free_content(settings *s)
{
    for (size_t i = 0; i < s->listen_count; i++)
        free_listening(&s->listen[i]);
    free(s->listen);
    free(s->allow);
    for (size_t i = 0; i < s->output_count; i++)
        free(s->outputs[i]);
    free(s->outputs);
    nl_options_free(settings_rows, s);
    free(s->metrics_names);
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

static const char *read_tls(const nl_url *url, listening *l)
{
    static char words[NL_CHANNEL_WORDS];
    for (size_t i = 0; i < url->option_count; i++) {
        const char *name = url->options[i].name;
        if (strcmp(name, "cert") == 0 || strcmp(name, "key") == 0 || strcmp(name, "ca") == 0 ||
            strcmp(name, "crl") == 0 || strcmp(name, "peers") == 0 || strcmp(name, "hosts") == 0)
            continue;
        snprintf(words, sizeof words, "unknown option \"%.80s\": cert, key, ca, crl, peers and hosts are known", name);
        return words;
    }
    const char *hosts = nl_url_option_value(url, "hosts");
    if (hosts != NULL && (strcmp(hosts, "certificate") != 0 || nl_url_option_value(url, "ca") == NULL))
        return "use hosts=certificate, with ca=FILE";
    l->hosts_certified = hosts != NULL;
    nl_tls_options options = {.ca = nl_url_option_value(url, "ca"),
                              .cert = nl_url_option_value(url, "cert"),
                              .key = nl_url_option_value(url, "key"),
                              .crl = nl_url_option_value(url, "crl"),
                              .peers = nl_url_option_value(url, "peers")};
    if (!confine_keep_files_of(url))
        return nl_error_message();
    l->tls = nl_tls_new(true, &options, words);
    l->vouched = options.ca != NULL;
    return l->tls != NULL ? NULL : words;
}

static const char *read_listening(const nl_url *url, listening *l)
{
    bool secure = url->scheme == NL_SCHEME_NETLOGS || (url->scheme == NL_SCHEME_INHERITED && url->option_count > 0);
    if (secure)
        return read_tls(url, l);
    bool known = url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_UNIX || url->scheme == NL_SCHEME_UDP ||
                 url->scheme == NL_SCHEME_INHERITED;
    if (known && url->option_count == 0)
        return NULL;
    return "netlogd listens on x-netlog://HOST:PORT, x-netlogs://HOST:PORT?cert=FILE&key=FILE&ca=FILE, "
           "x-netlog+udp://HOST:PORT, unix:PATH, inherited:NAME and nats://HOST/STREAM";
}

static const char *add_listening(settings *s, const char *value)
{
    nl_url *url = nl_url_parse(value);
    if (url == NULL)
        return nl_error_message();
    listening l = {0};
    const char *reason = url->scheme == NL_SCHEME_NATS ? nats_reader_check(url, &l.url) : read_listening(url, &l);
    nl_url_free(url);
    if (reason != NULL)
        return reason;
    if (l.url != NULL) {
        l.nats = program_copy(value);
    } else {
        l.url = program_copy(value);
        l.url[strcspn(l.url, "?")] = '\0';
    }
    s->listen = realloc(s->listen, (s->listen_count + 1) * sizeof *s->listen);
    if (s->listen == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    s->listen[s->listen_count++] = l;
    return NULL;
}

/* One or more networks with commas between. */
static const char *add_networks(settings *s, const char *value)
{
    while (*value != '\0') {
        char text[80];
        size_t size = strcspn(value, ",");
        network net;
        if (size >= sizeof text)
            return "it is no network";
        memcpy(text, value, size);
        text[size] = '\0';
        if (!network_parse(text, &net))
            return "it is no network: ADDRESS or ADDRESS/BITS is wanted";
        s->allow = realloc(s->allow, (s->allow_count + 1) * sizeof *s->allow);
        if (s->allow == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        s->allow[s->allow_count++] = net;
        value += size + (value[size] == ',');
    }
    return NULL;
}

static const char *add_destination(settings *s, const char *value)
{
    output_options options;
    if (output_options_parse(value, &options) != NL_OK)
        return nl_error_message();
    output_options_free(&options);
    for (size_t i = 0; i < s->output_count; i++)
        if (strcmp(s->outputs[i], value) == 0)
            return NULL; /* said by option and file */
    s->outputs = realloc(s->outputs, (s->output_count + 1) * sizeof *s->outputs);
    if (s->outputs == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    s->outputs[s->output_count++] = program_copy(value);
    return NULL;
}

static const char *set_text(char **place, const char *value)
{
    free(*place);
    *place = program_copy(value);
    return NULL;
}

static const char *set_control_url(settings *s, const char *value)
{
    nl_url *url = nl_url_parse(value);
    if (url == NULL)
        return nl_error_message();
    bool usable = url->scheme == NL_SCHEME_UNIX && url->option_count == 0;
    nl_url_free(url);
    return usable ? set_text(&s->control, value) : "unix:PATH is wanted";
}

/* http://HOST:PORT[?names=NAME,...] is kept as what listener_open takes, and the names. */
static const char *set_metrics_url(settings *s, const char *value)
{
    static const char begin[] = "http://", names[] = "?names=";
    char url[300];
    const char *rest = strncmp(value, begin, sizeof begin - 1) == 0 ? value + sizeof begin - 1 : "";
    size_t length = strcspn(rest, "?");
    bool has_names = strncmp(rest + length, names, sizeof names - 1) == 0;
    bool usable = *rest != '\0' && (rest[length] == '\0' || has_names) &&
                  snprintf(url, sizeof url, "x-netlog://%.*s", (int)length, rest) < (int)sizeof url;
    nl_url *parsed = usable ? nl_url_parse(url) : NULL;
    bool has_port = parsed != NULL && memchr(rest, ':', length) != NULL;
    nl_url_free(parsed);
    if (!has_port)
        return "use http://HOST:PORT or http://HOST:PORT?names=NAME,...";
    if (has_names)
        set_text(&s->metrics_names, rest + length + sizeof names - 1);
    return set_text(&s->metrics, url);
}

/* The setters of rows, over functions that return what is wrong. */
#define SETTER(name, function)                                                                                         \
    static bool name(void *s, const nl_option *row, const char *value)                                                 \
    {                                                                                                                  \
        (void)row;                                                                                                     \
        const char *problem = function(s, value);                                                                      \
        if (problem != NULL)                                                                                           \
            nl_error_set(NL_ERROR_INVALID, "%s", problem);                                                             \
        return problem == NULL;                                                                                        \
    }

SETTER(set_listen, add_listening)
SETTER(set_allow, add_networks)
SETTER(set_output, add_destination)
SETTER(set_control, set_control_url)
SETTER(set_metrics, set_metrics_url)

#define YEAR (365 * 86400 * NL_NS_PER_SECOND)

const nl_option settings_rows[] = {
    {.name = "listen",
     .value = "URL",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = set_listen,
     .initial = "(inherited:* where systemd opened sockets, else x-netlog://127.0.0.1:14830)",
     .help = "Where clients connect: x-netlog://HOST[:PORT] (port 14830 unless given, 0 for any free one); "
             "x-netlogs://HOST[:PORT]?cert=FILE&key=FILE (TLS; &ca=FILE requires client certificates that it verifies, "
             "&crl=FILE rejects revoked ones, &peers=NAME,... admits only these names, &hosts=certificate admits only "
             "records of the hosts in the certificate); x-netlog+udp://HOST[:PORT] (whole lines in datagrams); "
             "unix:PATH; inherited:NAME, a socket that systemd opened (with ?cert=FILE and so on for TLS; * for all); "
             "nats://HOST/STREAM?durable=NAME&share=K/N, the records in NATS JetStream (doc/nats.md)"},
    {.name = "output",
     .value = "FILE|FOLDER/|URL",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = set_output,
     .initial = "(-, standard output)",
     .help = "Where records go: a file, appended to; -, standard output; FOLDER/ or "
             "file:FOLDER/NAME-{N}.nlb?rotate_size=256m&rotate_time=1h, numbered files; x-netlog://HOST?spool=FOLDER "
             "(or x-netlogs, unix), another collector, x-syslog://FACILITY?spool=FOLDER, and "
             "nats://HOST/STREAM?spool=FOLDER, NATS JetStream (doc/nats.md), which get all that waits in the folder, "
             "at most spool_size=1g. Options of each: where=EXPRESSION (which records), format=ulm|bp|nlb, zstd=LEVEL, "
             "fsync=never|flush|DURATION (when acknowledged records are safe against a crash of the machine), and for "
             "numbered files seal=FILE (reveal tampering; see --create-seal-key)"},
    {.name = "allow",
     .value = "NETWORK",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = set_allow,
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

static void report_at_start(void *unused, const char *message)
{
    (void)unused;
    program_error("%s", message);
}

static bool read_config(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    (void)row;
    confine_keep_file(value, CONFINE_READ);
    if (!config_file_read(value, settings_rows, s, s->report != NULL ? s->report : report_at_start, s->report_user)) {
        if (s->report == NULL)
            exit(PROGRAM_USAGE);
        s->config_failed = true;
    }
    return true;
}

static bool set_repair(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    (void)row, (void)value;
    s->verify = s->repair = true;
    return true;
}

const nl_option settings_command_rows[] = {
    {.name = "config",
     .letter = 'c',
     .value = "FILE",
     .set = read_config,
     .help = "Read settings from FILE: lines such as \"listen URL\""},
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
