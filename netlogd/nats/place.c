#include "config.h"

#include "place.h"

#include "base/memory.h"
#include "base/error.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORT = 4222,
    NAME_MAX = 64,
    PART_MAX = 100, /* maximum length of a part of a subject in bytes, before escaping */
    SERVERS_MAX = 64,
};

/* ---- option rows ---- */

/* Checks the name of a stream or consumer, or the prefix of subjects. `also` contains additional valid characters. */
static bool check_name(const char *value, const char *also)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (const char *at = value; *at != '\0'; at++)
        if (strchr(letters, *at) == NULL && strchr(also, *at) == NULL)
            return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a valid name; use letters, digits, _ and -", value);
    return strlen(value) <= NAME_MAX ||
           nl_error_false(NL_ERROR_INVALID, "the name is longer than %d characters", NAME_MAX);
}

static bool set_name(void *place, const nl_option *row, const char *value)
{
    return check_name(value, "") && nl_option_set_by_type(row, place, value);
}

static bool set_subject(void *place, const nl_option *row, const char *value)
{
    if (*value == '.' || strstr(value, "..") != NULL || value[strlen(value) - 1] == '.')
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" begins or ends with a dot, or has two dots in a row", value);
    return check_name(value, ".") && nl_option_set_by_type(row, place, value);
}

static bool set_share(void *settings, const nl_option *row, const char *value)
{
    nats_place *place = settings;
    char *end = NULL;
    (void)row;
    unsigned long share = strtoul(value, &end, 10), of = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    if (*end != '\0' || share < 1 || share > of || of > NATS_SHARDS_MAX)
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not K/N, such as 1/2 and 2/2 for two readers", value);
    place->share = (unsigned)share;
    place->of_shares = (unsigned)of;
    return true;
}

static const char *get_share(const void *settings, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const nats_place *place = settings;
    snprintf(scratch, NL_OPTION_TEXT_SIZE, "%u/%u", place->share, place->of_shares);
    return index == 0 ? scratch : NULL;
}

static bool set_password_file(void *settings, const nl_option *row, const char *value)
{
    nats_place *place = settings;
    char *password = program_read_secret(value);
    (void)row;
    if (password == NULL)
        return false;
    free(place->password);
    place->password = password;
    return true;
}

const nl_option nats_rows[] = {
    {.name = "user",
     .type = NL_OPTION_COPY,
     NL_OPTION_MEMBER(nats_place, user),
     .help = "User name; the same as USER@ in the URL"},
    {.name = "password",
     .type = NL_OPTION_COPY,
     NL_OPTION_MEMBER(nats_place, password),
     .help = "Password; the same as :PASSWORD@ in the URL"},
    {.name = "password_file",
     .value = "FILE",
     .is_path = true,
     .set = set_password_file,
     .help = "File whose first line is the password"},
    {.name = "creds",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(nats_place, creds),
     .help = "NATS credentials: a JWT and its key"},
    {.name = "tls",
     .type = NL_OPTION_FLAG,
     .initial = "(yes if ca=, cert=, key= or name= is set, otherwise no)",
     NL_OPTION_MEMBER(nats_place, tls),
     .help = "Connect with TLS"},
    {.name = "ca",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .is_path = true,
     .initial = "(the system's certificates)",
     NL_OPTION_MEMBER(nats_place, ca),
     .help = "CA certificates for verifying the servers"},
    {.name = "cert",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(nats_place, cert),
     .help = "Certificate of netlogd"},
    {.name = "key",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(nats_place, key),
     .help = "Private key of netlogd's certificate"},
    {.name = "name",
     .type = NL_OPTION_COPY,
     .value = "HOST",
     .initial = "(the server's host)",
     NL_OPTION_MEMBER(nats_place, tls_name),
     .help = "Name that the servers' certificates must contain"},
    {.name = "subject",
     .type = NL_OPTION_COPY,
     .value = "PREFIX",
     .initial = "netlogger",
     .set = set_subject,
     NL_OPTION_MEMBER(nats_place, subject),
     .help = "Prefix of the subjects, which have the form PREFIX.HOST.PROG.SHARD"},
    {.name = "shards",
     .type = NL_OPTION_COUNT,
     .minimum = 1,
     .maximum = NATS_SHARDS_MAX,
     .initial = "(the number of shards of the existing stream, or 4 for a new stream)",
     NL_OPTION_MEMBER(nats_place, shards),
     .help = "Number of shards of a new stream. A shard is a JetStream stream that stores part of the records. An "
             "existing stream must have the same number of shards"},
    {.name = "replicas",
     .type = NL_OPTION_COUNT,
     .minimum = 1,
     .maximum = 5,
     .initial = "1",
     NL_OPTION_MEMBER(nats_place, replicas),
     .help = "Number of servers that store each shard of a new stream"},
    {.name = "max_age",
     .type = NL_OPTION_DURATION,
     .initial = "7d",
     NL_OPTION_MEMBER(nats_place, max_age_ns),
     .help = "Maximum age of records in a new stream. The servers remove older records; 0 sets no limit"},
    {.name = "max_bytes",
     .type = NL_OPTION_SIZE,
     .initial = "0",
     NL_OPTION_MEMBER(nats_place, max_bytes),
     .help = "Maximum size of a shard of a new stream. With 0, only the servers' own limit applies"},
    {.name = "discard",
     .type = NL_OPTION_CHOICE,
     .choices = "new|old",
     .initial = "new",
     NL_OPTION_MEMBER(nats_place, discard_old),
     .help = "Action when a shard of a new stream is full. With new, publishers wait; with old, the servers remove the "
             "oldest records, even unread records"},
    {.name = "window",
     .type = NL_OPTION_DURATION,
     .initial = "2m",
     NL_OPTION_MEMBER(nats_place, window_ns),
     .help = "Time for which the servers of a new stream remember message IDs to recognize duplicates"},
    {0},
};

const nl_option nats_output_rows[] = {
    {.name = "messages",
     .type = NL_OPTION_CHOICE,
     .choices = "program|shard",
     .initial = "program",
     NL_OPTION_MEMBER(nats_place, by_shard),
     .help =
         "Contents of a message. With program, each message has one block, and each program has its own subject. With "
         "shard, netlogd sends fewer messages: each message has many blocks, and its subject is PREFIX._._.SHARD"},
    {0},
};

const nl_option nats_listener_rows[] = {
    {.name = "durable",
     .type = NL_OPTION_COPY,
     .value = "NAME",
     .initial = "netlogd",
     .set = set_name,
     NL_OPTION_MEMBER(nats_place, durable),
     .help = "Durable name of the JetStream consumers"},
    {.name = "share",
     .value = "K/N",
     .initial = "1/1",
     .set = set_share,
     .get = get_share,
     .help = "Read every Nth shard, beginning with the Kth; N netlogd processes with the same durable= divide the "
             "shards among themselves"},
    {0},
};

/* ---- parsing ---- */

static nl_status read_options(nats_place *place, const nl_url *url, bool output)
{
    const nl_url_rows tables[] = {{nats_rows, place}, {nats_listener_rows, place}, {0}};
    nl_status status = output ? nl_url_pick_options(url, nats_rows, place) : nl_url_read_options(url, tables);
    if (status == NL_OK && output)
        status = nl_url_pick_options(url, nats_output_rows, place);
    if (status != NL_OK)
        return NL_FAILED;
    if ((place->user == NULL) != (place->password == NULL))
        return nl_error_set(NL_ERROR_INVALID, "a user requires a password, and a password requires a user");
    if ((place->cert == NULL) != (place->key == NULL))
        return nl_error_set(NL_ERROR_INVALID, "cert= needs key=, and key= needs cert=");
    place->tls |= place->ca != NULL || place->cert != NULL || place->tls_name != NULL;
    return NL_OK;
}

/* Adds a server, in the notation of libnats. */
static nl_status add_server(nats_place *place, const char *text, size_t size)
{
    char part[256];
    if (size == 0 || size >= sizeof part || place->server_count == SERVERS_MAX)
        return nl_error_set(NL_ERROR_INVALID, size == 0 ? "empty host" : "too many hosts");
    memcpy(part, text, size);
    part[size] = '\0';
    const char *bracket = strrchr(part, ']'), *colon = strchr(bracket != NULL ? bracket : part, ':');
    if (colon == part || strpbrk(part, "/@ \t\r\n\"") != NULL)
        return nl_error_set(NL_ERROR_INVALID, "\"%s\" is not a host", part);
    if (colon != NULL) {
        char *end;
        unsigned long port = colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
        if (port < 1 || port > 65535 || *end != '\0')
            return nl_error_set(NL_ERROR_INVALID, "\"%s\" is not a port", colon + 1);
    }
    place->servers = nl_memory_check(realloc(place->servers, (place->server_count + 1) * sizeof *place->servers));
    place->servers[place->server_count++] =
        colon != NULL ? program_format("nats://%s", part) : program_format("nats://%s:%d", part, PORT);
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
    nats_place *place = nl_memory_check(calloc(1, sizeof *place));
    place->name = program_format("nats://%s/%s", url->host, url->path);
    nl_options_init(nats_rows, place);
    nl_options_init(nats_output_rows, place);
    nl_options_init(nats_listener_rows, place);
    place->stream = program_copy(url->path);
    bool named = *url->path != '\0' && check_name(url->path, "");
    nl_status status =
        named ? read_servers(place, url->host)
              : nl_error_set(NL_ERROR_INVALID, "stream: %s", *url->path != '\0' ? nl_error_message() : "missing name");
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
    nl_options_free(nats_rows, place);
    nl_options_free(nats_listener_rows, place);
    free(place->name);
    free(place->stream);
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
