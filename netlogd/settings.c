#include "config.h"

#include "settings.h"

#include "output/failure.h"
#include "output/options.h"
#include "nats_reader.h"
#include "program/program.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_MAX_CONNECTIONS = 10000,
    DEFAULT_MAX_PER_ADDRESS = 5000,
    DEFAULT_IDLE_S = 86400,
    DEFAULT_MAX_RECORD = 1 << 20,
    DEFAULT_MAX_MEMORY = 1 << 30,
    LEAST_MEMORY = 1 << 20,
    LEAST_RECORD = 1024,
    DEFAULT_RECOVER_S = 5,
    DEFAULT_HANDSHAKE_S = 10,
    DEFAULT_RECORD_S = 300,
    DEFAULT_STOP_S = 10,
    DEFAULT_QUEUE = 4 << 20,
    DEFAULT_SUBSCRIBERS = 1000,
    LEAST_QUEUE = 4 << 10
};

#define LOG_DEFAULT "file:///dev/stderr"

void settings_init(settings *s)
{
    *s = (settings){
        .log = program_copy(LOG_DEFAULT),
        .level = NL_IMPORTANT,
        .max_record_size = DEFAULT_MAX_RECORD,
        .max_connections = DEFAULT_MAX_CONNECTIONS,
        .max_per_address = DEFAULT_MAX_PER_ADDRESS,
        .max_memory = DEFAULT_MAX_MEMORY,
        .idle_timeout_s = DEFAULT_IDLE_S,
        .record_s = DEFAULT_RECORD_S,
        .handshake_s = DEFAULT_HANDSHAKE_S,
        .stop_s = DEFAULT_STOP_S,
        .recover_s = DEFAULT_RECOVER_S,
        .subscribe = true,
        .confine = true,
        .subscriber_queue = DEFAULT_QUEUE,
        .max_subscribers = DEFAULT_SUBSCRIBERS,
    };
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
    free(s->log);
    free(s->reject);
    free(s->activation);
    free(s->control);
    free(s->metrics);
    free(s->metrics_names);
    free(s->pid_file);
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

static bool differ(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a != b : strcmp(a, b) != 0;
}

const char *settings_fixed_difference(const settings *a, const settings *b)
{
    return differ(a->log, b->log)                 ? "log"
           : differ(a->reject, b->reject)         ? "reject"
           : differ(a->activation, b->activation) ? "activation"
           : differ(a->pid_file, b->pid_file)     ? "pid-file"
           : differ(a->control, b->control)       ? "control"
           : differ(a->metrics, b->metrics)       ? "metrics"
           : a->recover_s != b->recover_s         ? "recover"
           : a->confine != b->confine             ? "confine"
                                                  : NULL;
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

static const char *add_listen(settings *s, const char *value)
{
    nl_url *url = nl_url_parse(value);
    if (url == NULL)
        return nl_error_message();
    listening l = {0};
    const char *why = url->scheme == NL_SCHEME_NATS ? nats_reader_check(url, &l.url) : read_listening(url, &l);
    nl_url_free(url);
    if (why != NULL)
        return why;
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
static const char *add_allow(settings *s, const char *value)
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

static const char *add_output(settings *s, const char *value)
{
    output_options options;
    if (output_options_parse(value, &options) != NL_OK)
        return failure_text();
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

static const char *set_size(size_t *place, const char *value, size_t least)
{
    size_t size;
    if (!nl_size_parse(value, &size))
        return "it is no size: digits, perhaps with k, M or G, are wanted";
    if (size < least)
        return "it is too small";
    *place = size;
    return NULL;
}

static const char *set_seconds(unsigned *setting, const char *value, unsigned least)
{
    size_t seconds;
    const char *why = set_size(&seconds, value, least);
    if (why == NULL && seconds > 86400 * 365)
        return "it is more than a year";
    if (why == NULL)
        *setting = (unsigned)seconds;
    return why;
}

static const char *set_level(settings *s, const char *value)
{
    nl_level level = nl_level_parse(value, strlen(value));
    if (level == NL_LEVEL_NONE)
        return "it is none of the levels " NL_LEVEL_NAMES;
    s->level = level;
    return NULL;
}

static const char *set_fraction(settings *s, const char *value)
{
    bool decimal = strcmp(value, "decimal") == 0;
    if (!decimal && strcmp(value, "microseconds") != 0)
        return "it is neither decimal nor microseconds";
    s->fraction = decimal ? NL_FRACTION_DECIMAL : NL_FRACTION_MICROSECONDS;
    return NULL;
}

static const char *set_control(settings *s, const char *value)
{
    nl_url *url = nl_url_parse(value);
    if (url == NULL)
        return nl_error_message();
    bool usable = url->scheme == NL_SCHEME_UNIX && url->option_count == 0;
    nl_url_free(url);
    return usable ? set_text(&s->control, value) : "unix:PATH is wanted";
}

/* http://HOST:PORT[?names=NAME,...] is kept as what listener_open takes, and the names. */
static const char *set_metrics(settings *s, const char *value)
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

static const char *set_flag(bool *place, const char *value)
{
    *place = strcmp(value, "yes") == 0;
    return *place || strcmp(value, "no") == 0 ? NULL : "it is neither yes nor no";
}

const char *settings_set(settings *s, const char *name, const char *value)
{
    if (*value == '\0')
        return "it has no value";
    if (strcmp(name, "listen") == 0)
        return add_listen(s, value);
    if (strcmp(name, "allow") == 0)
        return add_allow(s, value);
    if (strcmp(name, "output") == 0)
        return add_output(s, value);
    if (strcmp(name, "log") == 0)
        return set_text(&s->log, value);
    if (strcmp(name, "level") == 0)
        return set_level(s, value);
    if (strcmp(name, "reject") == 0)
        return set_text(&s->reject, value);
    if (strcmp(name, "pid-file") == 0)
        return set_text(&s->pid_file, value);
    if (strcmp(name, "fraction") == 0)
        return set_fraction(s, value);
    if (strcmp(name, "max-record-size") == 0)
        return set_size(&s->max_record_size, value, LEAST_RECORD);
    if (strcmp(name, "max-connections") == 0)
        return set_size(&s->max_connections, value, 1);
    if (strcmp(name, "max-memory") == 0)
        return set_size(&s->max_memory, value, LEAST_MEMORY);
    if (strcmp(name, "idle-timeout") == 0)
        return set_seconds(&s->idle_timeout_s, value, 0);
    if (strcmp(name, "max-per-address") == 0)
        return set_size(&s->max_per_address, value, 0);
    if (strcmp(name, "max-rate") == 0)
        return set_size(&s->max_rate, value, 0);
    if (strcmp(name, "record-timeout") == 0)
        return set_seconds(&s->record_s, value, 0);
    if (strcmp(name, "handshake-timeout") == 0)
        return set_seconds(&s->handshake_s, value, 0);
    if (strcmp(name, "activation") == 0)
        return set_text(&s->activation, value);
    if (strcmp(name, "control") == 0)
        return set_control(s, value);
    if (strcmp(name, "metrics") == 0)
        return set_metrics(s, value);
    if (strcmp(name, "subscribe") == 0)
        return set_flag(&s->subscribe, value);
    if (strcmp(name, "confine") == 0)
        return set_flag(&s->confine, value);
    if (strcmp(name, "subscriber-queue") == 0)
        return set_size(&s->subscriber_queue, value, LEAST_QUEUE);
    if (strcmp(name, "max-subscribers") == 0)
        return set_size(&s->max_subscribers, value, 0);
    if (strcmp(name, "recover") == 0)
        return set_seconds(&s->recover_s, value, 0);
    if (strcmp(name, "stop-timeout") == 0)
        return set_seconds(&s->stop_s, value, 1);
    return "there is no such directive";
}

static const char *set_directive(void *s, const char *name, const char *value)
{
    return settings_set(s, name, value);
}

bool settings_read_file(settings *s, const char *path, config_report report, void *user)
{
    return config_file_read(path, set_directive, s, report, user);
}
