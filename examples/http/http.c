#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_SIZE = 8192 };

/* Parses [ADDRESS:]PORT; the default address is loopback. */
static struct sockaddr_in parse_address(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN] = "127.0.0.1";
    const char *colon = strchr(text, ':');
    if (colon != NULL)
        snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    address.sin_port = htons((uint16_t)atoi(colon != NULL ? colon + 1 : text));
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

static bool send_text(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t sent = send(fd, text, left, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        text += sent;
        left -= (size_t)sent;
    }
    return true;
}

/*
 * Receives until the text contains `end`. If `end` is NULL, receives until the peer closes the connection. Returns
 * false on failure.
 */
static bool receive_text(int fd, char *text, size_t size, const char *end)
{
    size_t length = 0;
    for (;;) {
        ssize_t received = length < size - 1 ? recv(fd, text + length, size - 1 - length, 0) : -1;
        if (received < 0)
            return false;
        length += (size_t)received;
        text[length] = '\0';
        if (end != NULL && strstr(text, end) != NULL)
            return true;
        if (received == 0)
            return end == NULL;
    }
}

/* ---- server ---- */

/* Gets the context from the headers. Ignores tracestate if traceparent is not valid, as W3C Trace Context requires. */
static void parse_headers(char *headers, http_request *request)
{
    int traceparents = 0;
    bool good = true;
    request->tracestate[0] = '\0';
    for (char *line = headers, *next; line != NULL; line = next) {
        next = strstr(line, "\r\n");
        if (next != NULL) {
            *next = '\0';
            next += 2;
        }
        char *value = strchr(line, ':');
        if (value == NULL)
            continue;
        *value++ = '\0';
        if (strcasecmp(line, "traceparent") == 0 && ++traceparents == 1)
            nl_traceparent_parse(value, strlen(value), &request->caller);
        if (strcasecmp(line, "tracestate") == 0 && good)
            good = nl_tracestate_append(request->tracestate, value, strlen(value)) == NL_OK;
    }
    if (traceparents != 1)
        request->caller = *NL_NO_PARENT;
    if (!good || memcmp(&request->caller, NL_NO_PARENT, sizeof request->caller) == 0)
        request->tracestate[0] = '\0';
}

static http_handler *handler_of_all;

static void *serve_one(void *user)
{
    int fd = (int)(intptr_t)user;
    char head[HEAD_SIZE], body[HTTP_BODY_SIZE] = "", answer[HTTP_BODY_SIZE + 128];
    http_request request = {.path = ""};
    if (receive_text(fd, head, sizeof head, "\r\n\r\n") && sscanf(head, "GET %255s", request.path) == 1) {
        parse_headers(strstr(head, "\r\n") + 2, &request);
        int status = handler_of_all(&request, body);
        snprintf(answer, sizeof answer, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
                 strlen(body), body);
        send_text(fd, answer);
    }
    close(fd);
    return NULL;
}

static void on_terminate(int number)
{
    (void)number; /* the signal makes accept return EINTR */
}

int http_serve(const char *server, http_handler *handler)
{
    struct sockaddr_in address = parse_address(server);
    socklen_t size = sizeof address;
    struct sigaction action = {.sa_handler = on_terminate};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    handler_of_all = handler;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    sigaction(SIGTERM, &action, NULL);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 128) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        perror("listen");
        return 1;
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    sigset_t terminate;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return errno == EINTR ? 0 : 1;
        pthread_t thread;
        pthread_sigmask(SIG_BLOCK, &terminate, NULL); /* only this thread receives the signal */
        if (pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
        else
            close(fd);
        pthread_sigmask(SIG_UNBLOCK, &terminate, NULL);
    }
}

/* ---- client ---- */

int http_get(const char *server, int timeout_ms, const char *path, const char *tracestate, char body[HTTP_BODY_SIZE])
{
    struct sockaddr_in address = parse_address(server);
    struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    char text[HEAD_SIZE], header[NL_TRACEPARENT_SIZE];
    int status = 0, fd = socket(AF_INET, SOCK_STREAM, 0);
    nl_context current = nl_context_current();
    size_t length = (size_t)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n", path);
    if (nl_traceparent_format(&current, header) > 0)
        length += (size_t)snprintf(text + length, sizeof text - length, "traceparent: %s\r\n", header);
    if (*tracestate != '\0')
        length += (size_t)snprintf(text + length, sizeof text - length, "tracestate: %s\r\n", tracestate);
    snprintf(text + length, sizeof text - length, "\r\n");
    body[0] = '\0';
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout); /* also limits connect */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && send_text(fd, text) &&
        receive_text(fd, text, sizeof text, NULL) && sscanf(text, "HTTP/1.%*c %d", &status) == 1) {
        const char *end = strstr(text, "\r\n\r\n");
        snprintf(body, HTTP_BODY_SIZE, "%.*s", HTTP_BODY_SIZE - 1, end != NULL ? end + 4 : "");
    }
    close(fd);
    return status;
}
