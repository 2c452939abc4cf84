/*
 * dpss_server serves the blocks of one file over TCP.
 *
 * Together with dpss_get, dpss_server is an example of an instrumented application. The server logs an event when it
 * receives a request, and before and after each operation that can take time (disk, network). Each event contains the
 * block number, which connects the events of one block across programs and hosts.
 */
#define _GNU_SOURCE 1

#include "arguments.h"
#include "dpss_protocol.h"

#include <netlogger.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct server {
    const char *path;
    int file;
    int send_buffer; /* size of each connection's send buffer; 0: the kernel adjusts it */
    nl_log *log;     /* NULL if logging is off; every call accepts NULL */
} server;

typedef struct client {
    const server *server;
    int fd;
    char *block; /* buffer for one block */
    size_t capacity;
} client;

static bool answer(client *c, dpss_status status, uint64_t block, uint64_t size)
{
    unsigned char header[DPSS_RESPONSE_SIZE];
    dpss_put_response(&(dpss_response){status, block, size}, header);
    return dpss_send(c->fd, header, sizeof header);
}

static bool answer_size(client *c)
{
    off_t size = lseek(c->server->file, 0, SEEK_END); /* also the size of a disk, which fstat does not return */
    if (size < 0)
        return answer(c, DPSS_DISK_FAILED, 0, 0);
    return answer(c, DPSS_DONE, 0, (uint64_t)size);
}

static bool dpss_server_reserve(client *c, size_t size)
{
    if (size <= c->capacity)
        return true;
    char *block = realloc(c->block, size);
    if (block == NULL)
        return false;
    c->block = block;
    c->capacity = size;
    return true;
}

/* Reads a block from disk and sends it. Returns false on failure. */
static bool answer_block(client *c, const dpss_request *request)
{
    nl_log *log = c->server->log;
    unsigned long long id = request->block;
    nl_write(log, NL_USAGE, "BlockRequestRecv", "BLOCK.ID=%llu", id);
    if (request->block_size == 0 || request->block_size > DPSS_BLOCK_MAX ||
        !dpss_server_reserve(c, request->block_size))
        return answer(c, DPSS_BAD_REQUEST, request->block, 0);
    if (request->block >= (uint64_t)INT64_MAX / request->block_size)
        return answer(c, DPSS_NO_BLOCK, request->block, 0);

    nl_write(log, NL_USAGE, "DiskReadStart", "BLOCK.ID=%llu", id);
    off_t offset = (off_t)(request->block * request->block_size);
    ssize_t got = pread(c->server->file, c->block, request->block_size, offset);
    nl_write(log, NL_USAGE, "DiskReadEnd", "BLOCK.ID=%llu BLOCK.SZ=%zd", id, got);
    if (got <= 0)
        return answer(c, got == 0 ? DPSS_NO_BLOCK : DPSS_DISK_FAILED, request->block, 0);

    nl_write(log, NL_USAGE, "BlockSendStart", "BLOCK.ID=%llu", id);
    bool sent = answer(c, DPSS_DONE, request->block, (uint64_t)got) && dpss_send(c->fd, c->block, (size_t)got);
    nl_write(log, NL_USAGE, "BlockSendEnd", "BLOCK.ID=%llu", id);
    return sent;
}

static void *serve_client(void *argument)
{
    client *c = argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* the accepting thread handles signals */
    unsigned char bytes[DPSS_REQUEST_SIZE];
    bool good = true;
    while (good && dpss_receive(c->fd, bytes, sizeof bytes)) {
        dpss_request request;
        if (!dpss_parse_request(bytes, &request)) {
            nl_write(c->server->log, NL_WARNING, "BadRequest", NULL);
            break; /* the start of the next request cannot be found */
        }
        if (request.operation == DPSS_SIZE)
            good = answer_size(c);
        else if (request.operation == DPSS_READ)
            good = answer_block(c, &request);
        else
            good = answer(c, DPSS_BAD_REQUEST, request.block, 0);
    }
    close(c->fd);
    free(c->block);
    free(c);
    return NULL;
}

static void start_client(const server *srv, int fd)
{
    client *c = calloc(1, sizeof *c);
    pthread_t thread;
    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (client){.server = srv, .fd = fd};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    /* With a large send buffer, the thread reads the next block while the network sends the previous block. */
    if (srv->send_buffer > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &srv->send_buffer, sizeof srv->send_buffer);
    if (pthread_create(&thread, NULL, serve_client, c) != 0) {
        close(fd);
        free(c);
        return;
    }
    pthread_detach(thread);
}

static int listen_on(char *address)
{
    const char *host, *port;
    dpss_split_address(address, &host, &port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int result = getaddrinfo(host, port, &hints, &found);
    if (result != 0) {
        fprintf(stderr, "dpss_server: listen on %s:%s: %s\n", host, port, gai_strerror(result));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
        fprintf(stderr, "dpss_server: listen on %s:%s: %s\n", host, port, strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static volatile sig_atomic_t stopping;

static void on_stop(int signal)
{
    (void)signal;
    stopping = 1;
}

typedef struct arguments {
    char *listen;
    const char *dest;
    const char *path;
    int send_buffer;
} arguments;

static const struct argp_option options[] = {
    {"listen", 'l', "HOST[:PORT]", 0, "Address on which to listen (default 127.0.0.1:" DPSS_DEFAULT_PORT ")", 0},
    {"dest", 'd', "URL", 0, "Destination of events (default $NETLOGGER_DEST)", 0},
    {"send-buffer", 'b', "SIZE", 0, "Send buffer of each connection (default 1m); 0: the kernel adjusts it", 0},
    {0},
};

static error_t dpss_server_parse(int key, char *text, struct argp_state *state)
{
    arguments *a = state->input;
    if (key == 'l')
        a->listen = text;
    else if (key == 'd')
        a->dest = text;
    else if (key == 'b')
        a->send_buffer = (int)arguments_number(state, text, units_size, 0, 1 << 30, "a size such as 64k");
    else if (key == ARGP_KEY_ARG && a->path == NULL)
        a->path = text;
    else if (key == ARGP_KEY_ARG || key == ARGP_KEY_NO_ARGS)
        argp_failure(state, 2, 0, "%s; see dpss_server --help",
                     a->path == NULL ? "missing FILE" : "more than one FILE");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp argp = {
    options, dpss_server_parse, "FILE", "Serve the blocks of FILE, which may be a disk, over TCP.", 0, 0, 0};

int main(int argc, char **argv)
{
    char default_address[] = "127.0.0.1";
    arguments a = {.listen = default_address, .send_buffer = 1 << 20};
    arguments_parse(&argp, argc, argv, &a);
    server srv = {.path = a.path, .file = open(a.path, O_RDONLY | O_CLOEXEC), .send_buffer = a.send_buffer};
    if (srv.file < 0) {
        fprintf(stderr, "dpss_server: open %s: %s\n", a.path, strerror(errno));
        return 1;
    }
    int fd = listen_on(a.listen);
    if (fd < 0)
        return 1;
    srv.log = nl_open("dpss_server", a.dest);

    struct sigaction stop = {.sa_handler = on_stop}; /* no SA_RESTART, so that the signal interrupts accept */
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    while (!stopping) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer >= 0)
            start_client(&srv, peer);
        else if (errno == EMFILE || errno == ENFILE)
            usleep(10000); /* wait until a client disconnects */
    }
    nl_flush(srv.log);
    return 0; /* exit() ends the other threads and sends the events that they have logged */
}
