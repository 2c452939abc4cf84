#include "config.h"

#include "settings.h"

#include "base/error.h"
#include "service/http_url.h"
#include "base/memory.h"
#include "nats_reader.h"
#include "output/options.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    for (size_t i = 0; i < s->input_count; i++)
        free(s->inputs[i]);
    free(s->inputs);
    free(s->journal);
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

const listening *settings_find_listening(const settings *s, const char *url)
{
    for (size_t i = 0; i < s->listen_count; i++)
        if (strcmp(s->listen[i].url, url) == 0)
            return &s->listen[i];
    return NULL;
}

static bool read_listening(const char *value, listening *l)
{
    nl_url *url = nl_url_parse_for(value, NL_URL_LISTEN);
    if (url == NULL)
        return false;
    const nl_scheme scheme = url->scheme;
    bool secure = scheme == NL_SCHEME_NETLOGS, may_be_secure = scheme == NL_SCHEME_INHERITED, good;
    l->grpc = scheme == NL_SCHEME_OTLP;
    l->otlp = l->grpc || scheme == NL_SCHEME_OTLP_HTTP;
    may_be_secure |= l->otlp;
    l->syslog = scheme >= NL_SCHEME_SYSLOG_UDP && scheme <= NL_SCHEME_SYSLOG_TLS;
    secure |= scheme == NL_SCHEME_SYSLOG_TLS;
    if (l->syslog)
        tzset(); /* reads the time zone, for times of RFC 3164, while netlogd may still open its file */
    if (scheme == NL_SCHEME_NATS)
        good = (l->url = nats_reader_check(url)) != NULL;
    else if (secure || may_be_secure || l->syslog || scheme == NL_SCHEME_NETLOG || scheme == NL_SCHEME_UNIX ||
             scheme == NL_SCHEME_UDP)
        good = listening_read(url, secure || may_be_secure ? listening_hosts_rows : NULL, secure, may_be_secure, l);
    else
        good = nl_error_false(
            NL_ERROR_INVALID,
            "unsupported URL; expected x-netlog://HOST:PORT, x-netlogs://HOST:PORT?cert=FILE&key=FILE&ca=FILE, "
            "x-netlog+udp://HOST:PORT, otlp://HOST:PORT, otlp+http://HOST:PORT, syslog+udp://HOST:PORT, "
            "syslog+tcp://HOST:PORT, syslog+tls://HOST:PORT?cert=FILE&key=FILE&ca=FILE, unix:PATH, inherited:NAME or "
            "nats://HOST/STREAM");
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
    s->listen = nl_memory_check(realloc(s->listen, (s->listen_count + 1) * sizeof *s->listen));
    s->listen[s->listen_count++] = l;
    return true;
}

static const char *get_listening(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const settings *s = from;
    (void)scratch;
    if (index >= s->listen_count)
        return NULL;
    /* A NATS URL may contain a password. */
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
            return true; /* given both on the command line and in the file */
    s->outputs = nl_memory_check(realloc(s->outputs, (s->output_count + 1) * sizeof *s->outputs));
    s->outputs[s->output_count++] = program_copy(value);
    return true;
}

static const char *get_output(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const settings *s = from;
    (void)scratch;
    return index < s->output_count ? s->outputs[index] : NULL;
}

/* Sets the directory of journal:DIRECTORY. The default is the journal of this machine. */
static bool set_journal(settings *s, const char *directory)
{
    static const char persistent[] = "/var/log/journal", volatile_journal[] = "/run/log/journal";
    free(s->journal);
    s->journal = program_copy(*directory != '\0'                 ? directory
                              : program_is_directory(persistent) ? persistent
                                                                 : volatile_journal);
    return true;
}

static bool add_input(void *to, const nl_option *row, const char *value)
{
    static const char journal[] = "journal:";
    settings *s = to;
    if (strncmp(value, journal, sizeof journal - 1) == 0)
        return set_journal(s, value + sizeof journal - 1);
    nl_url *url = nl_url_parse(value);
    bool good = url != NULL;
    (void)row;
    if (good && (url->scheme != NL_SCHEME_FILE || url->option_count > 0))
        good =
            nl_error_false(NL_ERROR_INVALID,
                           "unsupported input; expected journal:, or file:PATH, in which *, ? and [...] are wildcards");
    for (size_t i = 0; good && i < s->input_count; i++)
        if (strcmp(s->inputs[i], url->path) == 0) {
            nl_url_free(url);
            return true; /* given both on the command line and in the file */
        }
    if (good) {
        s->inputs = nl_memory_check(realloc(s->inputs, (s->input_count + 1) * sizeof *s->inputs));
        s->inputs[s->input_count++] = program_copy(url->path);
    }
    nl_url_free(url);
    return good;
}

static const char *get_input(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const settings *s = from;
    (void)scratch;
    return index < s->input_count ? s->inputs[index] : index == s->input_count ? s->journal : NULL;
}

static bool set_control(void *to, const nl_option *row, const char *value)
{
    nl_url *url = nl_url_parse(value);
    bool usable = url != NULL && url->scheme == NL_SCHEME_UNIX && url->option_count == 0;
    nl_url_free(url);
    return usable ? nl_option_set_by_type(row, to, value)
                  : nl_error_false(NL_ERROR_INVALID, "unsupported URL; expected unix:PATH");
}

static bool set_metrics(void *to, const nl_option *row, const char *value)
{
    settings *s = to;
    char text[1024];
    if (strncmp(value, "http://", 7) != 0 || !url_from_http(value, NULL, text, sizeof text))
        return nl_error_false(NL_ERROR_INVALID,
                              "unsupported URL; expected http://HOST:PORT or http://HOST:PORT?names=NAME,...");
    nl_url *url = nl_url_parse(text);
    listening l = {.url = program_copy(text), .http = true};
    bool usable = url != NULL && listening_read(url, listening_names_rows, false, false, &l);
    nl_url_free(url);
    if (!usable) {
        listening_free(&l);
        return false;
    }
    l.url[strcspn(l.url, "?")] = '\0';
    listening_free(&s->metrics_place);
    s->metrics_place = l;
    return nl_option_set_by_type(row, s, value);
}

#define YEAR (365 * 86400 * NL_NS_PER_SECOND)

const nl_option settings_rows[] = {
    {.name = "listen",
     .value = "URL",
     .repeatable = true,
     .on_reload = true,
     .set = add_listening,
     .get = get_listening,
     .initial = "(inherited:* if systemd opened sockets, otherwise x-netlog://127.0.0.1:14830)",
     .help =
         "Address on which to listen, such as x-netlog://127.0.0.1:14830 or unix:PATH. The schemes are x-netlog (TCP), "
         "x-netlogs (TLS), x-netlog+udp, otlp and otlp+http (OpenTelemetry), syslog+udp, syslog+tcp, syslog+tls, "
         "unix, inherited (sockets that systemd opened) and nats (NATS JetStream). netlogd.conf(5) describes these "
         "URLs"},
    {.name = "input",
     .value = "file:PATTERN|journal:",
     .repeatable = true,
     .set = add_input,
     .get = get_input,
     .help = "Input to follow: file:PATTERN (log files, even when they are rotated) or journal:[DIRECTORY] (systemd's "
             "journal; default: this machine's journal). PATTERN is a path, and may contain the wildcards *, ? and "
             "[...]. netlogd stores its reading positions in OUTPUT.inputs and OUTPUT.cursor, beside the first output "
             "that has a file or a spool"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE|DIRECTORY/|URL",
     .repeatable = true,
     .on_reload = true,
     .set = add_output,
     .get = get_output,
     .initial = "(-, standard output)",
     .help = "Destination of records: a file to which netlogd appends; DIRECTORY/ or file:DIRECTORY/NAME-{N}.nlb for "
             "numbered files; or another URL with spool=DIRECTORY. The schemes of these URLs are x-netlog, x-netlogs "
             "and unix (another collector), x-syslog, otlp and otlp+http (OpenTelemetry), and nats (NATS JetStream). "
             "netlogd.conf(5) describes the URLs and their options"},
    {.name = "allow",
     .value = "NETWORK",
     .repeatable = true,
     .on_reload = true,
     .set = network_list_set,
     .get = get_allowed,
     NL_OPTION_MEMBER(settings, allow),
     .help = "Comma-separated networks and addresses from which clients may connect, such as 10.0.0.0/8,fd00::/8; "
             "required to listen on a non-loopback address, unless the listener requires client certificates"},
    {.name = "log",
     .type = NL_OPTION_COPY,
     .value = "URL",
     .initial = "file:///dev/stderr",
     NL_OPTION_MEMBER(settings, log),
     .help = "Destination of netlogd's own events"},
    {.name = "level",
     .type = NL_OPTION_LEVEL,
     .initial = "Important",
     .on_reload = true,
     NL_OPTION_MEMBER(settings, level),
     .help = "Level threshold of netlogd's own events; Important selects all levels except Debug"},
    {.name = "reject",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(settings, reject),
     .help = "Append malformed input to FILE. If a record exceeds max-record-size, append only its beginning"},
    {.name = "fraction",
     .type = NL_OPTION_CHOICE,
     .choices = "decimal|microseconds",
     .initial = "decimal",
     .on_reload = true,
     NL_OPTION_MEMBER(settings, fraction),
     .help = "Rule for reading fractional seconds of fewer than six digits. With decimal, .2102 means 0.2102 s; with "
             "microseconds, it means 2102 microseconds, as in the logs of old GridFTP servers"},
    {.name = "max-record-size",
     .type = NL_OPTION_SIZE,
     .initial = "1m",
     .minimum = 1024,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, max_record_size),
     .help = "Maximum size of a record outside of blocks; a longer record is malformed"},
    {.name = "max-connections",
     .type = NL_OPTION_COUNT,
     .initial = "10000",
     .minimum = 1,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, max_connections),
     .help = "Maximum number of clients. To accept a new client at this limit, netlogd disconnects a silent client of "
             "the address that has the most clients. If none of these clients has been silent for a second, netlogd "
             "may reject the new client"},
    {.name = "max-memory",
     .type = NL_OPTION_SIZE,
     .initial = "1g",
     .minimum = 1 << 20,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, max_memory),
     .help = "Maximum memory for incomplete records and blocks of all clients, and for unread records of subscribers. "
             "Unread records may use at most half of this memory. At this limit, netlogd disconnects the clients whose "
             "large records have been incomplete longest, and subscribers miss records"},
    {.name = "max-per-address",
     .type = NL_OPTION_COUNT,
     .initial = "5000",
     .on_reload = true,
     NL_OPTION_MEMBER(settings, max_per_address),
     .help = "Maximum number of clients from one IPv4 address or one IPv6 /64 network. To accept a new client at this "
             "limit, netlogd disconnects a silent client of the same address or network, or rejects the new client if "
             "none is silent; 0 sets no limit"},
    {.name = "max-rate",
     .type = NL_OPTION_COUNT,
     .initial = "0",
     .on_reload = true,
     NL_OPTION_MEMBER(settings, max_rate),
     .help = "Maximum number of records per second from one client. netlogd reads more slowly from a client that "
             "exceeds this limit; 0 sets no limit"},
    {.name = "record-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "5m",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, record_s),
     .help = "Close a connection if a record takes longer than DURATION to arrive; 0 disables the limit. For the first "
             "record, this time begins when the client connects"},
    {.name = "idle-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "1d",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, idle_timeout_s),
     .help = "Close a connection that has been silent for DURATION; 0 disables the limit"},
    {.name = "handshake-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "10s",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, handshake_s),
     .help = "Close a connection if the TLS handshake or the client's request is not complete after DURATION; 0 "
             "disables the limit"},
    {.name = "stop-timeout",
     .type = NL_OPTION_DURATION,
     .initial = "10s",
     .minimum = NL_NS_PER_SECOND,
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, stop_s),
     .help = "Maximum time for shutting down, not counting writes to disk. During this time, netlogd still receives "
             "records from clients, and delivers records to subscribers and destinations. Undelivered records stay in "
             "the spool"},
    {.name = "activation",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(settings, activation),
     .help = "Send the commands in FILE to the programs that log to this netlogd in the binary format, when they "
             "connect and whenever FILE changes. The commands are level, event and marker (see nl_control), and "
             "destination with the URL of another collector"},
    {.name = "subscribe",
     .type = NL_OPTION_CHOICE,
     .choices = "no|yes",
     .initial = "yes",
     .on_reload = true,
     NL_OPTION_MEMBER(settings, subscribe),
     .help = "Allow clients to subscribe to records"},
    {.name = "subscriber-queue",
     .type = NL_OPTION_SIZE,
     .initial = "4m",
     .minimum = 4 << 10,
     .on_reload = true,
     NL_OPTION_MEMBER(settings, subscriber_queue),
     .help = "Maximum total size of the records that wait for a slow subscriber; beyond this size, netlogd drops "
             "records for this subscriber and reports their number to the subscriber"},
    {.name = "max-subscribers",
     .type = NL_OPTION_COUNT,
     .initial = "1000",
     .on_reload = true,
     NL_OPTION_MEMBER(settings, max_subscribers),
     .help = "Maximum number of subscribers; each subscriber needs up to 100 KiB of memory besides its queue, and each "
             "different expression needs processor time for each record"},
    {.name = "control",
     .value = "unix:PATH",
     .type = NL_OPTION_COPY,
     .set = set_control,
     NL_OPTION_MEMBER(settings, control),
     .help = "Socket for netlogctl; only root and netlogd's user may connect to it"},
    {.name = "metrics",
     .value = "URL",
     .type = NL_OPTION_COPY,
     .set = set_metrics,
     NL_OPTION_MEMBER(settings, metrics),
     .help = "Address on which to serve Prometheus metrics (GET /metrics): http://HOST:PORT. A non-loopback address "
             "requires --allow. The Host header of a request must contain this host's address or name, or a name in "
             "the URL option names="},
    {.name = "recover",
     .type = NL_OPTION_DURATION,
     .initial = "5s",
     .maximum = YEAR,
     .unit = NL_NS_PER_SECOND,
     NL_OPTION_MEMBER(settings, recover_s),
     .help = "Interval at which netlogd recovers events from killed processes of its user; 0 disables recovery"},
    {.name = "confine",
     .type = NL_OPTION_CHOICE,
     .initial = "yes",
     .choices = "no|yes",
     NL_OPTION_MEMBER(settings, confine),
     .help = "Use seccomp and Landlock to give up the system calls, file access and network ports that this "
             "configuration does not need"},
    {.name = "pid-file",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(settings, pid_file),
     .help = "Write the process ID to FILE"},
    {0},
};

void settings_add(settings *s, const char *name, const char *value)
{
    if (!nl_option_set(nl_option_find(settings_rows, name), s, value))
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
     .help = "Stay in the foreground"},
    {.name = "verify",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(settings, verify),
     .help = "Do not collect. Check every record in the files or directories, and report damaged, missing and repeated "
             "records. The exit status is 1 if there are any"},
    {.name = "repair",
     .type = NL_OPTION_FLAG,
     .set = set_repair,
     .help =
         "Check files as --verify does, and move damaged parts of FILE to FILE.damaged. Rebuild the indexes of FILE "
         "if FILE.index is missing, or if an index is invalid or outdated"},
    {.name = "seal-key",
     .value = "FILE",
     NL_OPTION_MEMBER(settings, seal_key),
     .help = "With --verify, also check the seals of directories. FILE contains the key that --create-seal-key "
             "printed. The exit status is 1 if anything was altered, added or removed after sealing"},
    {.name = "since",
     .type = NL_OPTION_TIME,
     NL_OPTION_MEMBER(settings, since_ns),
     .help = "With --seal-key, ignore missing files that were sealed before TIME"},
    {.name = "create-seal-key",
     .value = "FILE",
     NL_OPTION_MEMBER(settings, create_seal_key),
     .help = "Do not collect. Create a key in FILE for an output's seal=FILE option, and print the key for --seal-key"},
    {0},
};
