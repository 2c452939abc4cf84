#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/time_internal.h"
#include "record/bytes.h"
#include "transport/destination.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct {
    const char *name;
    nl_scheme scheme;
    bool authority; /* "//" and a host follow */
    unsigned uses;  /* bits of nl_url_use; 0: another name of the previous scheme */
} schemes[] = {
    {"x-netlog", NL_SCHEME_NETLOG, true, NL_URL_ANY},
    {"x-netlogs", NL_SCHEME_NETLOGS, true, NL_URL_ANY},
    {"x-netlog+udp", NL_SCHEME_UDP, true, NL_URL_LISTEN},
    {"udp", NL_SCHEME_UDP, true, 0},
    {"inherited", NL_SCHEME_INHERITED, false, NL_URL_LISTEN},
    {"x-syslog", NL_SCHEME_SYSLOG, true, NL_URL_WRITE | NL_URL_OUTPUT},
    {"unix", NL_SCHEME_UNIX, false, NL_URL_ANY},
    {"memory", NL_SCHEME_MEMORY, false, NL_URL_READ | NL_URL_WRITE},
    {"file", NL_SCHEME_FILE, false, NL_URL_READ | NL_URL_WRITE | NL_URL_OUTPUT},
    {"nats", NL_SCHEME_NATS, true, NL_URL_LISTEN | NL_URL_OUTPUT},
    {"otlp", NL_SCHEME_OTLP, true, NL_URL_LISTEN | NL_URL_OUTPUT},
    {"otlp+http", NL_SCHEME_OTLP_HTTP, true, NL_URL_LISTEN | NL_URL_OUTPUT},
    {"syslog+udp", NL_SCHEME_SYSLOG_UDP, true, NL_URL_LISTEN},
    {"syslog+tcp", NL_SCHEME_SYSLOG_TCP, true, NL_URL_LISTEN},
    {"syslog+tls", NL_SCHEME_SYSLOG_TLS, true, NL_URL_LISTEN},
};

enum {
    SCHEME_COUNT = sizeof schemes / sizeof schemes[0],
    OTLP_PORT = 4317,
    OTLP_HTTP_PORT = 4318,
    SYSLOG_PORT = 514,
    SYSLOG_TLS_PORT = 6514
};

static uint16_t default_port(nl_scheme scheme)
{
    switch (scheme) {
    case NL_SCHEME_OTLP:
        return OTLP_PORT;
    case NL_SCHEME_OTLP_HTTP:
        return OTLP_HTTP_PORT;
    case NL_SCHEME_SYSLOG_UDP:
    case NL_SCHEME_SYSLOG_TCP:
        return SYSLOG_PORT;
    case NL_SCHEME_SYSLOG_TLS:
        return SYSLOG_TLS_PORT;
    default:
        return NL_DEFAULT_PORT;
    }
}

/* Returns text[0..size) with %HH decoded, or NULL if an escape is invalid or denotes NUL. */
static char *url_decode(const char *text, size_t size)
{
    char *out = nl_memory_check(malloc(size + 1)), *at = out;
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '%') {
            *at++ = text[i];
            continue;
        }
        int high = i + 1 < size ? nl_hex_digit(text[i + 1]) : -1;
        int low = i + 2 < size ? nl_hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0) {
            nl_error_set(NL_ERROR_INVALID, "\"%.*s\" is not a valid escape; use %%HH, except %%00",
                         size - i < 3 ? (int)(size - i) : 3, text + i);
            free(out);
            return NULL;
        }
        *at++ = (char)(high * 16 + low);
        i += 2;
    }
    *at = '\0';
    return out;
}

/* Adds an option; name and value are still encoded. Returns NL_FAILED on failure. */
static nl_status add_pair(nl_url *url, nl_string name, nl_string value)
{
    nl_url_option *options = realloc(url->options, (url->option_count + 1) * sizeof *options);
    if (options == NULL)
        return nl_memory_failed();
    url->options = options;
    nl_url_option added = {.name = url_decode(name.data, name.size)};
    added.value = added.name == NULL ? NULL : url_decode(value.data, value.size);
    if (added.value == NULL) {
        free(added.name);
        return NL_FAILED;
    }
    options[url->option_count++] = added;
    return NL_OK;
}

static nl_status add_option(nl_url *url, const char *text, size_t size)
{
    const char *equals = memchr(text, '=', size);
    if (equals == NULL || equals == text)
        return nl_error_set(NL_ERROR_INVALID, "option \"%.*s\" does not have the form NAME=VALUE", (int)size, text);
    size_t name = (size_t)(equals - text);
    return add_pair(url, (nl_string){text, name}, (nl_string){equals + 1, size - name - 1});
}

/* Parses NAME=VALUE&NAME=VALUE after the '?'. Returns NL_FAILED on failure. */
static nl_status parse_options(nl_url *url, const char *text)
{
    while (*text != '\0') {
        size_t size = strcspn(text, "&");
        if (size > 0 && add_option(url, text, size) != NL_OK)
            return NL_FAILED;
        text += size + (text[size] == '&');
    }
    return NL_OK;
}

static nl_status parse_port(nl_url *url, const char *text, size_t size)
{
    unsigned long port = 0;
    size_t digits = nl_digits(text, size);
    for (size_t i = 0; i < digits && port <= 65535; i++)
        port = port * 10 + (unsigned long)(text[i] - '0');
    if (size == 0 || digits < size || port > 65535)
        return nl_error_set(NL_ERROR_INVALID, "\"%.*s\" is not a port; use 0 to 65535", (int)size, text);
    url->port = (uint16_t)port;
    return NL_OK;
}

/* Parses HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT, with an optional slash. Returns NL_FAILED on failure. */
static nl_status parse_host(nl_url *url, const char *text, size_t size)
{
    if (size > 0 && text[size - 1] == '/')
        size--;
    const char *end = text + size, *host = text, *host_end, *colon;
    if (size > 0 && text[0] == '[') {
        host = text + 1;
        host_end = memchr(text, ']', size);
        if (host_end == NULL)
            return nl_error_set(NL_ERROR_INVALID, "missing ] after the address");
        colon = host_end + 1;
    } else {
        colon = memchr(text, ':', size);
        colon = colon != NULL ? colon : end;
        host_end = colon;
    }
    if (host == host_end)
        return nl_error_set(NL_ERROR_INVALID, "missing host; use %.*s://HOST", (int)strcspn(url->text, ":"), url->text);
    url->port = default_port(url->scheme);
    if (colon < end) {
        if (*colon != ':')
            return nl_error_set(NL_ERROR_INVALID, "unexpected \"%.*s\" after the host", (int)(end - colon), colon);
        if (parse_port(url, colon + 1, (size_t)(end - colon - 1)) != NL_OK)
            return NL_FAILED;
    }
    url->host = url_decode(host, (size_t)(host_end - host));
    if (url->host == NULL)
        return NL_FAILED;
    if (strpbrk(url->host, "/@ \t\r\n") != NULL)
        return nl_error_set(NL_ERROR_INVALID, "\"%s\" is not a host", url->host);
    return NL_OK;
}

static nl_status parse_path(nl_url *url, const char *text, size_t size, const char *what)
{
    /* file:///tmp/a and unix:///run/b have an empty host. */
    if (url->scheme != NL_SCHEME_MEMORY && size >= 3 && memcmp(text, "///", 3) == 0) {
        text += 2;
        size -= 2;
    } else if (url->scheme != NL_SCHEME_MEMORY && size >= 2 && memcmp(text, "//", 2) == 0) {
        return nl_error_set(NL_ERROR_INVALID,
                            "the URL places the %s on another host; write three slashes for a local %s", what, what);
    }
    if (size == 0)
        return nl_error_set(NL_ERROR_INVALID, "missing %s; use %.*s:%s", what, (int)strcspn(url->text, ":"), url->text,
                            strcmp(what, "name") == 0 ? "NAME" : "PATH");
    url->path = url_decode(text, size);
    return url->path != NULL ? NL_OK : NL_FAILED;
}

/*
 * Parses HOSTS/STREAM or USER:PASSWORD@HOSTS/STREAM. Checks only that the list of hosts is not empty and that no
 * further path follows. Returns NL_FAILED on failure.
 */
static nl_status parse_nats(nl_url *url, const char *text, size_t size)
{
    const char *slash = memrchr(text, '/', size), *at = memrchr(text, '@', size), *end = text + size;
    if (slash == NULL || slash + 1 == end)
        return nl_error_set(NL_ERROR_INVALID, "missing stream; use nats://HOST/STREAM");
    if (at != NULL && at < slash) {
        const char *colon = memchr(text, ':', (size_t)(at - text));
        if (colon == NULL)
            return nl_error_set(NL_ERROR_INVALID, "missing password; use USER:PASSWORD@");
        if (add_pair(url, (nl_string){"user", 4}, (nl_string){text, (size_t)(colon - text)}) != NL_OK ||
            add_pair(url, (nl_string){"password", 8}, (nl_string){colon + 1, (size_t)(at - colon - 1)}) != NL_OK)
            return NL_FAILED;
        text = at + 1;
    }
    if (text == slash)
        return nl_error_set(NL_ERROR_INVALID, "missing host; use nats://HOST/STREAM");
    if (memchr(text, '/', (size_t)(slash - text)) != NULL)
        return nl_error_set(NL_ERROR_INVALID, "\"%.*s\" is not a host", (int)(slash - text), text);
    url->host = strndup(text, (size_t)(slash - text));
    if (url->host == NULL)
        return nl_memory_failed();
    url->path = url_decode(slash + 1, (size_t)(end - slash - 1));
    return url->path != NULL ? NL_OK : NL_FAILED;
}

/* Parses the part between the scheme and the options. Returns NL_FAILED on failure. */
static nl_status parse_rest(nl_url *url, const char *text, size_t size)
{
    switch (url->scheme) {
    case NL_SCHEME_NETLOG:
    case NL_SCHEME_NETLOGS:
    case NL_SCHEME_UDP:
    case NL_SCHEME_OTLP:
    case NL_SCHEME_OTLP_HTTP:
    case NL_SCHEME_SYSLOG_UDP:
    case NL_SCHEME_SYSLOG_TCP:
    case NL_SCHEME_SYSLOG_TLS:
        return parse_host(url, text, size);
    case NL_SCHEME_SYSLOG:
        if (size > 0 && text[size - 1] == '/')
            size--;
        url->path = url_decode(text, size);
        return url->path != NULL ? NL_OK : NL_FAILED;
    case NL_SCHEME_NATS:
        return parse_nats(url, text, size);
    case NL_SCHEME_UNIX:
        return parse_path(url, text, size, "socket");
    case NL_SCHEME_MEMORY:
    case NL_SCHEME_INHERITED:
        return parse_path(url, text, size, "name");
    default:
        return parse_path(url, text, size, "file");
    }
}

/* Returns the size of a scheme with its colon, if text begins with it, otherwise 0. */
static size_t scheme_size(int index, const char *text)
{
    size_t size = strlen(schemes[index].name);
    return strncasecmp(text, schemes[index].name, size) == 0 && text[size] == ':' ? size + 1 : 0;
}

/* Sets an error such as: unknown scheme (did you mean x-netlog?); use file, unix or x-netlog */
static nl_status reject_scheme(const char *text, nl_url_use use)
{
    nl_option rows[SCHEME_COUNT + 1] = {0};
    size_t count = 0;
    for (int i = 0; i < SCHEME_COUNT; i++)
        if ((schemes[i].uses & use) != 0)
            rows[count++].name = schemes[i].name;
    char known[256] = "", given[32];
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(known);
        snprintf(known + size, sizeof known - size, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", rows[i].name);
    }
    nl_option_nearest nearest = {0};
    size_t size = strcspn(text, ":");
    snprintf(given, sizeof given, "%.*s", size < sizeof given ? (int)size : 0, text);
    nl_option_find_nearest(&nearest, rows, given);
    return nl_error_set(NL_ERROR_UNSUPPORTED, "unknown scheme%s%s%s; use %s",
                        nearest.name != NULL ? " (did you mean " : "", nearest.name != NULL ? nearest.name : "",
                        nearest.name != NULL ? "?)" : "", known);
}

static nl_status parse_scheme(nl_url *url, const char *text, nl_url_use use)
{
    for (int i = 0; i < SCHEME_COUNT; i++) {
        size_t size = scheme_size(i, text);
        if (size == 0)
            continue;
        url->scheme = schemes[i].scheme;
        text += size;
        if (schemes[i].authority) {
            if (strncmp(text, "//", 2) != 0)
                return nl_error_set(NL_ERROR_INVALID, "missing // after %s:", schemes[i].name);
            text += 2;
        }
        size = strcspn(text, "?");
        if (parse_rest(url, text, size) != NL_OK)
            return NL_FAILED;
        return text[size] == '?' ? parse_options(url, text + size + 1) : NL_OK;
    }
    return reject_scheme(text, use);
}

/* Returns whether text begins with a known or unknown scheme, and is probably not a file name. */
static bool has_scheme(const char *text)
{
    for (int i = 0; i < SCHEME_COUNT; i++)
        if (scheme_size(i, text) > 0)
            return true;
    size_t size = 0;
    while (isalnum((unsigned char)text[size]) || (text[size] != '\0' && strchr("+-.", text[size]) != NULL))
        size++;
    return size > 0 && strncmp(text + size, "://", 3) == 0;
}

/* Returns whether text ends with options after a possible file name. */
static bool has_options(const char *text)
{
    const char *name = strrchr(text, '?');
    size_t size = name != NULL ? strspn(name + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
    return size > 0 && name != text && name[1 + size] == '=';
}

/* Returns whether text has the form HOST:PORT or [ADDRESS]:PORT. Two digits after a colon may be the minutes of a time.
 */
static bool has_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0,
           size = colon != NULL ? (size_t)(colon - text) : 0;
    if (digits < 3 || digits > 5 || colon[1 + digits] != '\0' || size == 0)
        return false;
    if (text[0] == '[')
        return text[size - 1] == ']';
    size_t host = 0;
    while (host < size && (isalnum((unsigned char)text[host]) || text[host] == '-' || text[host] == '.'))
        host++;
    return host == size;
}

static bool is_ip_address(const char *text, int family)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(family, text, address) == 1;
}

/*
 * Returns whether text is probably the address of a collector without x-netlog://. The test does not query DNS, because
 * DNS may be slow and may resolve any name.
 */
static bool is_address(const char *text)
{
    char own[HOST_NAME_MAX + 1];
    bool named = gethostname(own, sizeof own) == 0 && strcasecmp(text, own) == 0;
    return named || strcasecmp(text, "localhost") == 0 || is_ip_address(text, AF_INET) ||
           is_ip_address(text, AF_INET6) || has_port(text);
}

static nl_status reject_address(const char *text)
{
    bool v6 = is_ip_address(text, AF_INET6);
    return nl_error_set(NL_ERROR_NOT_FOUND,
                        "no such file; for a collector, write x-netlog://%s%.200s%s; for a new file, write ./%.200s",
                        v6 ? "[" : "", text, v6 ? "]" : "", text);
}

nl_url *nl_url_parse(const char *text)
{
    NL_REQUIRE(text != NULL, "text is NULL", NULL);
    return nl_url_parse_for(text, NL_URL_ANY);
}

nl_url *nl_url_parse_for(const char *text, nl_url_use use)
{
    NL_REQUIRE(text != NULL, "text is NULL", NULL);
    nl_url *url = nl_memory_check(calloc(1, sizeof *url));
    if (url == NULL)
        return NULL;
    url->text = strdup(text);
    nl_status status = NL_OK;
    if (url->text == NULL) {
        status = nl_memory_failed();
    } else if (strcmp(text, "-") == 0) {
        url->scheme = NL_SCHEME_STDIO;
    } else if (has_scheme(text)) {
        status = parse_scheme(url, text, use);
    } else {
        url->scheme = NL_SCHEME_FILE;
        url->path = strdup(text);
        if (url->path == NULL)
            status = nl_memory_failed();
        else if (*text == '\0')
            status = nl_error_set(NL_ERROR_NOT_FOUND, "missing file name");
        else if (has_options(text) && access(text, F_OK) != 0)
            status = nl_error_set(NL_ERROR_NOT_FOUND, "no such file; to give options, write file:%.200s", text);
        else if (is_address(text) && access(text, F_OK) != 0)
            status = reject_address(text);
    }
    if (status == NL_OK)
        return url;
    nl_error_prepend("URL \"%.200s\"", text);
    nl_url_free(url);
    return NULL;
}

void nl_url_free(nl_url *url)
{
    if (url == NULL)
        return;
    for (size_t i = 0; i < url->option_count; i++) {
        free(url->options[i].name);
        free(url->options[i].value);
    }
    free(url->options);
    free(url->text);
    free(url->host);
    free(url->path);
    free(url);
}

const char *nl_url_option_value(const nl_url *url, const char *name)
{
    for (size_t i = 0; i < url->option_count; i++)
        if (strcmp(url->options[i].name, name) == 0)
            return url->options[i].value;
    return NULL;
}

static const char *nl_scheme_name(nl_scheme scheme)
{
    for (int i = 0; i < SCHEME_COUNT; i++)
        if (schemes[i].scheme == scheme)
            return schemes[i].name;
    return "-";
}

static bool url_row_is_valid(const nl_option *row, nl_scheme scheme)
{
    const char *name = nl_scheme_name(scheme);
    return row->commands == NULL || nl_option_list_has(row->commands, ' ', name, strlen(name));
}

static nl_status url_set_option(const nl_url *url, const nl_url_option *option, const nl_option *row, void *settings)
{
    if (!url_row_is_valid(row, url->scheme))
        return nl_error_set(NL_ERROR_INVALID, "option %s is valid only in %s URLs", row->name, row->commands);
    if (settings == NULL || nl_option_set(row, settings, option->value))
        return NL_OK;
    return nl_error_prepend("option %s", row->name);
}

/* Sets an error such as: unknown option "rnig" (did you mean ring?); the options are policy, block, ring */
static nl_status url_reject_option(const nl_url *url, const char *name, const nl_url_rows tables[])
{
    nl_option_nearest nearest = {0};
    char known[512] = "";
    for (; tables->rows != NULL; tables++) {
        nl_option_find_nearest(&nearest, tables->rows, name);
        for (const nl_option *row = tables->rows; row->name != NULL; row++)
            if (url_row_is_valid(row, url->scheme)) {
                size_t size = strlen(known);
                snprintf(known + size, sizeof known - size, "%s%s", size > 0 ? ", " : "", row->name);
            }
    }
    if (*known == '\0')
        return nl_error_set(NL_ERROR_INVALID, "unknown option \"%s\": %s URLs have no options", name,
                            nl_scheme_name(url->scheme));
    return nl_error_set(NL_ERROR_INVALID, "unknown option \"%s\"%s%s%s; the options are %s", name,
                        nearest.name != NULL ? " (did you mean " : "", nearest.name != NULL ? nearest.name : "",
                        nearest.name != NULL ? "?)" : "", known);
}

nl_status nl_url_read_options(const nl_url *url, const nl_url_rows tables[])
{
    nl_status status = NL_OK;
    for (size_t i = 0; i < url->option_count && status == NL_OK; i++) {
        const nl_url_option *option = &url->options[i];
        const nl_url_rows *table = tables;
        const nl_option *row = NULL;
        while (table->rows != NULL && (row = nl_option_find(table->rows, option->name)) == NULL)
            table++;
        status = row != NULL ? url_set_option(url, option, row, table->settings)
                             : url_reject_option(url, option->name, tables);
    }
    return status;
}

nl_status nl_url_pick_options(const nl_url *url, const nl_option *rows, void *settings)
{
    nl_status status = NL_OK;
    for (size_t i = 0; i < url->option_count && status == NL_OK; i++) {
        const nl_option *row = nl_option_find(rows, url->options[i].name);
        if (row != NULL)
            status = url_set_option(url, &url->options[i], row, settings);
    }
    return status;
}

void nl_url_append_escaped(nl_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        char escape[4];
        snprintf(escape, sizeof escape, "%%%02x", (unsigned char)*text);
        bool plain = strchr("%?&=", *text) == NULL;
        nl_buffer_append(out, plain ? text : escape, plain ? 1 : 3);
    }
}

int nl_path_descriptor(const char *path)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return 1;
    if (strcmp(path, "/dev/stderr") == 0)
        return 2;
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(directories[i]);
        if (strncmp(path, directories[i], size) == 0) {
            char *end;
            long fd = strtol(path + size, &end, 10);
            return path[size] >= '0' && path[size] <= '9' && *end == '\0' && fd <= INT_MAX ? (int)fd : -1;
        }
    }
    return -1;
}

bool nl_url_is_collector(const nl_url *url)
{
    return url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS || url->scheme == NL_SCHEME_UNIX;
}

bool nl_url_is_of_process(const nl_url *url)
{
    if (url->scheme == NL_SCHEME_STDIO || url->scheme == NL_SCHEME_MEMORY)
        return true;
    return url->scheme == NL_SCHEME_FILE && (strcmp(url->path, "/dev/tty") == 0 || nl_path_descriptor(url->path) >= 0);
}
