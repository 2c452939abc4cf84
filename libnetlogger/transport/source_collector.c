/*
 * A collector as a source: asked, by the one line that doc/requests.md tells of, for the records that it takes from now
 * on. It answers with a record that says whether it will, and goes on with the records themselves.
 */
#include "config.h"

#include "transport/source_collector.h"

#include "base/error.h"
#include "transport/destination.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000, ANSWER_MOST = 16 << 10 };

/* Appends NAME="value", as ULM quotes it. */
static void add(nl_buffer *line, const char *name, const char *value)
{
    nl_buffer_append(line, " ", 1);
    nl_buffer_append(line, name, strlen(name));
    nl_buffer_append(line, "=\"", 2);
    for (const char *at = value; *at != '\0'; at++) {
        char escape[5];
        if (*at == '"' || *at == '\\')
            nl_buffer_append(line, "\\", 1);
        if ((unsigned char)*at >= ' ')
            nl_buffer_append(line, at, 1);
        else
            nl_buffer_append(line, escape, (size_t)snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*at));
    }
    nl_buffer_append(line, "\"", 1);
}

/* The request that the URL's options make. */
static nl_status make_request(const nl_url *url, nl_buffer *line)
{
    static const char begin[] = "NETLOGGER/1 subscribe";
    static const struct {
        const char *option, *name;
    } known[] = {{"where", "WHERE"}, {"since", "SINCE"}, {"format", "FORMAT"}};
    nl_buffer_append(line, begin, sizeof begin - 1);
    for (size_t i = 0; i < url->option_count; i++) {
        size_t k = 0;
        while (k < 3 && strcmp(url->options[i].name, known[k].option) != 0)
            k++;
        if (k == 3)
            return nl_error_set("open %s: unknown option \"%s\"", url->text, url->options[i].name);
        add(line, known[k].name, url->options[i].value);
    }
    if (nl_url_option_value(url, "format") == NULL)
        add(line, "FORMAT", "nlb"); /* the smallest, and types are kept */
    nl_buffer_append(line, "\n", 1);
    return NL_OK;
}

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the answer's line, and takes it and nothing behind it off the socket. */
static nl_status read_answer(int fd, nl_buffer *answer)
{
    int64_t deadline_ms = monotonic_ms() + TIMEOUT_MS;
    while (answer->size < ANSWER_MOST) {
        char bytes[512];
        int64_t left_ms = deadline_ms - monotonic_ms();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0) == 0)
            return nl_error_set("it does not answer");
        ssize_t got = recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
        if (got == 0)
            return nl_error_set("it closed the connection");
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return nl_error_set_errno("read");
        if (got < 0)
            continue;
        const char *newline = memchr(bytes, '\n', (size_t)got);
        got = recv(fd, bytes, newline != NULL ? (size_t)(newline + 1 - bytes) : (size_t)got, MSG_DONTWAIT);
        nl_buffer_append(answer, bytes, got > 0 ? (size_t)got : 0);
        if (newline != NULL)
            return NL_OK;
    }
    return nl_error_set("its answer is none");
}

/* Whether the answer is that records follow. */
static nl_status judge(const nl_buffer *answer)
{
    nl_record *record = nl_record_new();
    nl_field reason;
    nl_status status = nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, answer->data, answer->size - 1);
    if (status != NL_OK)
        nl_error_set("its answer is none");
    else if (record->event.size == strlen("Netlogd.Subscribed") &&
             memcmp(record->event.data, "Netlogd.Subscribed", record->event.size) == 0)
        status = NL_OK;
    else if (nl_record_find(record, "REASON", &reason) && reason.type == NL_TYPE_STRING)
        status = nl_error_set("%.*s", (int)reason.string.size, reason.string.data);
    else
        status = nl_error_set("its answer is none");
    nl_record_free(record);
    return status == NL_OK ? NL_OK : NL_FAILED;
}

int nl_collector_subscribe(const nl_url *url)
{
    nl_buffer line = {0}, answer = {0};
    int fd = -1;
    nl_status status = make_request(url, &line);
    if (status == NL_OK && (fd = nl_socket_connect(url, TIMEOUT_MS)) < 0)
        status = NL_FAILED;
    /* So short a line fits into a new socket's buffer as a whole. */
    if (status == NL_OK && send(fd, line.data, line.size, MSG_NOSIGNAL) != (ssize_t)line.size)
        status = nl_error_set_errno("subscribe at %s", url->text);
    else if (status == NL_OK && (read_answer(fd, &answer) != NL_OK || judge(&answer) != NL_OK))
        status = nl_error_prepend("subscribe at %s", url->text);
    if (status != NL_OK && fd >= 0)
        close(fd);
    nl_buffer_free(&line);
    nl_buffer_free(&answer);
    return status == NL_OK ? fd : -1;
}
