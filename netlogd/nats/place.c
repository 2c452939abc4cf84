#include "config.h"

#include "place.h"

#include "base/error.h"
#include "output/options.h"
#include "program/program.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORT = 4222,
    SHARDS_DEFAULT_REPLICAS = 1,
    REPLICAS_MAX = 5,
    NAME_MAX = 64,
    PART_MAX = 100, /* bytes of a subject's part, before they are escaped */
    SERVERS_MAX = 64,
};

static const int64_t week_ns = 7 * 86400 * (int64_t)NL_NS_PER_SECOND;
static const int64_t window_ns = 120 * (int64_t)NL_NS_PER_SECOND;

const char *const nats_output_options[] = {"user",    "password",  "password_file", "creds",   "tls",    "ca",
                                           "cert",    "key",       "name",          "subject", "shards", "replicas",
                                           "max_age", "max_bytes", "discard",       "window",  "by",     NULL};

static nl_status set_text(char **place, const char *value)
{
    if (*value == '\0')
        return nl_error_set(NL_ERROR_INVALID, "it is empty");
    free(*place);
    *place = program_copy(value);
    return NL_OK;
}

/* What NATS takes as the name of a stream or consumer, and of a subject's first parts. */
static nl_status set_name(char **place, const char *value, const char *also)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (const char *at = value; *at != '\0'; at++)
        if (strchr(letters, *at) == NULL && strchr(also, *at) == NULL)
            return nl_error_set(NL_ERROR_INVALID, "letters, digits, _ and - are wanted");
    if (strlen(value) > NAME_MAX)
        return nl_error_set(NL_ERROR_INVALID, "it is longer than %d characters", NAME_MAX);
    return set_text(place, value);
}

static nl_status set_subject(char **place, const char *value)
{
    if (*value == '.' || strstr(value, "..") != NULL || (*value != '\0' && value[strlen(value) - 1] == '.'))
        return nl_error_set(NL_ERROR_INVALID, "it has an empty part");
    return set_name(place, value, ".");
}

static nl_status set_number(unsigned *place, const char *value, unsigned most)
{
    char *end;
    unsigned long number = *value >= '0' && *value <= '9' ? strtoul(value, &end, 10) : 0;
    if (number < 1 || number > most || *end != '\0')
        return nl_error_set(NL_ERROR_INVALID, "a number from 1 to %u is wanted", most);
    *place = (unsigned)number;
    return NL_OK;
}

static nl_status set_time(int64_t *place, const char *value)
{
    if (strcmp(value, "0") == 0) {
        *place = 0;
        return NL_OK;
    }
    return nl_duration_parse(value, place)
               ? NL_OK
               : nl_error_set(NL_ERROR_INVALID, "a number and us, ms, s, m, h or d is wanted");
}

static nl_status set_bytes(uint64_t *place, const char *value)
{
    size_t size;
    if (!nl_size_parse(value, &size))
        return nl_error_set(NL_ERROR_INVALID, "digits, perhaps with k, M or G, are wanted");
    *place = size;
    return NL_OK;
}

/* Whether value is the first of two words, rather than the other. */
static nl_status set_choice(bool *place, const char *value, const char *yes, const char *no)
{
    *place = strcmp(value, yes) == 0;
    return *place || strcmp(value, no) == 0 ? NL_OK : nl_error_set(NL_ERROR_INVALID, "%s or %s is wanted", yes, no);
}

static nl_status set_share(nats_place *place, const char *value)
{
    char *end = NULL;
    unsigned long share = strtoul(value, &end, 10), of = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    if (*end != '\0' || share < 1 || share > of || of > NATS_SHARDS_MAX)
        return nl_error_set(NL_ERROR_INVALID, "K/N is wanted: 1/2 and 2/2 for two that share it");
    place->share = (unsigned)share;
    place->of_shares = (unsigned)of;
    return NL_OK;
}

static nl_status read_password(char **place, const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return nl_error_set_errno("open");
    ssize_t size = getline(&line, &capacity, file);
    bool failed = ferror(file) != 0;
    if (failed)
        nl_error_set_errno("read");
    fclose(file);
    if (size > 0)
        line[strcspn(line, "\r\n")] = '\0';
    nl_status status = size > 0 ? set_text(place, line)
                       : failed ? NL_FAILED
                                : nl_error_set(NL_ERROR_INVALID, "it is empty");
    free(line);
    return status;
}

static nl_status set_tls(nats_place *place, char **text, const char *value)
{
    place->tls = true;
    return set_text(text, value);
}

static nl_status set_common(nats_place *place, const char *name, const char *value, bool *known)
{
    *known = true;
    if (strcmp(name, "user") == 0)
        return set_text(&place->user, value);
    if (strcmp(name, "password") == 0)
        return set_text(&place->password, value);
    if (strcmp(name, "password_file") == 0)
        return read_password(&place->password, value);
    if (strcmp(name, "creds") == 0)
        return set_text(&place->creds, value);
    if (strcmp(name, "tls") == 0)
        return set_choice(&place->tls, value, "yes", "no");
    if (strcmp(name, "ca") == 0)
        return set_tls(place, &place->ca, value);
    if (strcmp(name, "cert") == 0)
        return set_tls(place, &place->cert, value);
    if (strcmp(name, "key") == 0)
        return set_tls(place, &place->key, value);
    if (strcmp(name, "name") == 0)
        return set_tls(place, &place->tls_name, value);
    if (strcmp(name, "subject") == 0)
        return set_subject(&place->subject, value);
    if (strcmp(name, "shards") == 0)
        return set_number(&place->shards, value, NATS_SHARDS_MAX);
    if (strcmp(name, "replicas") == 0)
        return set_number(&place->replicas, value, REPLICAS_MAX);
    if (strcmp(name, "max_age") == 0)
        return set_time(&place->max_age_ns, value);
    if (strcmp(name, "max_bytes") == 0)
        return set_bytes(&place->max_bytes, value);
    if (strcmp(name, "discard") == 0)
        return set_choice(&place->discard_old, value, "old", "new");
    if (strcmp(name, "window") == 0)
        return set_time(&place->window_ns, value);
    *known = false;
    return NL_OK;
}

static nl_status set_option(nats_place *place, const char *name, const char *value, bool output)
{
    bool known;
    nl_status status = set_common(place, name, value, &known);
    if (known)
        return status;
    if (output)
        return strcmp(name, "by") == 0 ? set_choice(&place->by_shard, value, "shard", "program") : NL_OK;
    if (strcmp(name, "durable") == 0)
        return set_name(&place->durable, value, "");
    if (strcmp(name, "share") == 0)
        return set_share(place, value);
    return nl_error_set(NL_ERROR_INVALID, "it is not known");
}

static nl_status read_options(nats_place *place, const nl_url *url, bool output)
{
    for (size_t i = 0; i < url->option_count; i++) {
        const nl_url_option *option = &url->options[i];
        if (set_option(place, option->name, option->value, output) == NL_OK)
            continue;
        bool secret = strcmp(option->name, "password") == 0;
        return nl_error_prepend("option %s=%s", option->name, secret ? "..." : option->value);
    }
    if ((place->user == NULL) != (place->password == NULL))
        return nl_error_set(NL_ERROR_INVALID, "a user and a password belong together");
    if ((place->cert == NULL) != (place->key == NULL))
        return nl_error_set(NL_ERROR_INVALID, "a cert and a key belong together");
    return NL_OK;
}

/* "HOST:PORT", as libnats wants them. Whether there is such a host it says. */
static nl_status add_server(nats_place *place, const char *text, size_t size)
{
    char *server, part[256];
    if (size == 0 || size >= sizeof part || place->server_count == SERVERS_MAX)
        return nl_error_set(NL_ERROR_INVALID, size == 0 ? "a host is empty" : "that are too many hosts");
    memcpy(part, text, size);
    part[size] = '\0';
    const char *bracket = strrchr(part, ']'), *colon = strchr(bracket != NULL ? bracket : part, ':');
    if (colon == part || strpbrk(part, "/@ \t\r\n\"") != NULL)
        return nl_error_set(NL_ERROR_INVALID, "\"%s\" is no host", part);
    if (colon != NULL) {
        char *end;
        unsigned long port = colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
        if (port < 1 || port > 65535 || *end != '\0')
            return nl_error_set(NL_ERROR_INVALID, "\"%s\" is no port", colon + 1);
    }
    int made = colon != NULL ? asprintf(&server, "nats://%s", part) : asprintf(&server, "nats://%s:%d", part, PORT);
    char **servers = realloc(place->servers, (place->server_count + 1) * sizeof *servers);
    if (made < 0 || servers == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    place->servers = servers;
    servers[place->server_count++] = server;
    return NL_OK;
}

static nl_status read_servers(nats_place *place, const char *text)
{
    for (;;) {
        size_t size = strcspn(text, ",");
        if (add_server(place, text, size) != NL_OK)
            return NL_FAILED;
        if (text[size] == '\0')
            return NL_OK;
        text += size + 1;
    }
}

nats_place *nats_place_read(const nl_url *url, bool output)
{
    nats_place *place = calloc(1, sizeof *place);
    if (place == NULL || asprintf(&place->name, "nats://%s/%s", url->host, url->path) < 0)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    place->replicas = SHARDS_DEFAULT_REPLICAS;
    place->max_age_ns = week_ns;
    place->window_ns = window_ns;
    place->share = place->of_shares = 1;
    place->subject = program_copy("netlogger");
    place->durable = program_copy("netlogd");
    nl_status status = set_name(&place->stream, url->path, "");
    if (status != NL_OK) {
        nl_error_prepend("\"%s\" is no name of a stream", url->path);
    } else {
        status = read_servers(place, url->host);
    }
    if (status == NL_OK)
        status = read_options(place, url, output);
    if (status == NL_OK)
        return place;
    nats_place_free(place);
    return NULL;
}

void nats_place_free(nats_place *place)
{
    if (place == NULL)
        return;
    for (size_t i = 0; i < place->server_count; i++)
        free(place->servers[i]);
    free(place->servers);
    char *texts[] = {place->name, place->stream, place->subject, place->user,     place->password, place->creds,
                     place->ca,   place->cert,   place->key,     place->tls_name, place->durable};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    free(place);
}

bool nats_place_has_share(const nats_place *place, unsigned shard)
{
    return shard % place->of_shares == place->share - 1;
}

void nats_stream_name(const nats_place *place, unsigned shard, unsigned shards, char name[NATS_NAME_SIZE])
{
    if (shards == 1)
        snprintf(name, NATS_NAME_SIZE, "%s", place->stream);
    else
        snprintf(name, NATS_NAME_SIZE, "%s-%u", place->stream, shard + 1);
}

void nats_subject_add(nl_buffer *subject, nl_string text)
{
    static const char forbidden[] = ".*>%";
    nl_buffer_append(subject, text.size > 0 ? "." : "._", text.size > 0 ? 1 : 2);
    size_t size = text.size < PART_MAX ? text.size : PART_MAX;
    for (size_t i = 0; i < size; i++) {
        char byte = text.data[i], escaped[4];
        if (byte > ' ' && byte < 0x7f && strchr(forbidden, byte) == NULL)
            nl_buffer_append(subject, &byte, 1);
        else
            nl_buffer_append(subject, escaped,
                             (size_t)snprintf(escaped, sizeof escaped, "%%%02X", (unsigned char)byte));
    }
}
