/*
 * dpss_get fetches a file, whose blocks are distributed over N dpss_servers, through parallel connections. Block I is
 * on server I mod N. For each block, dpss_get logs the request, the arrival of each part, and the completion.
 */
#define _GNU_SOURCE 1

#include "arguments.h"
#include "dpss_protocol.h"

#include <netlogger.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct server {
    char *name;    /* as given on the command line */
    char *address; /* the memory that holds host and port */
    const char *host;
    const char *port;
    atomic_uint_least64_t next; /* index of the next block to request, among this server's blocks */
    atomic_uint_least64_t blocks;
    atomic_uint_least64_t bytes;
    atomic_int_least64_t last_ns; /* completion time of this server's latest block */
} server;

typedef struct transfer {
    server *servers;
    size_t server_count;
    uint64_t file_size;
    uint64_t block_count;
    uint32_t block_size;
    unsigned depth; /* maximum number of outstanding requests per connection */
    int file;       /* -1: the data is discarded */
    int64_t end_ns; /* no requests are sent after this time; 0: no limit */
    nl_log *log;
    atomic_bool failed;
} transfer;

/* One connection to one server. */
typedef struct connection {
    transfer *transfer;
    server *server;
    size_t server_index;
    unsigned number; /* index among all connections, for the log */
    int fd;
    pthread_t thread;
    bool running;
} connection;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

static bool dpss_get_fail(transfer *t, const server *srv, const char *what, const char *problem)
{
    /* Report only the first failure, because it causes the others. */
    if (!atomic_exchange(&t->failed, true))
        fprintf(stderr, "dpss_get: %s: %s: %s\n", srv->name, what, problem);
    return false;
}

static int dpss_get_connect_to(transfer *t, const server *srv)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int result = getaddrinfo(srv->host, srv->port, &hints, &found);
    if (result != 0) {
        dpss_get_fail(t, srv, "connect", gai_strerror(result));
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            int problem = errno;
            close(fd);
            errno = problem;
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        dpss_get_fail(t, srv, "connect",
                      errno == ECONNREFUSED ? "Connection refused; is dpss_server running there?" : strerror(errno));
    else
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static const char *receive_failure(void)
{
    return errno == 0 ? "the server closed the connection" : strerror(errno);
}

static const char *status_text(uint32_t status)
{
    return status == DPSS_NO_BLOCK      ? "the server does not have this block"
           : status == DPSS_DISK_FAILED ? "the server cannot read its disk"
           : status == DPSS_BAD_REQUEST ? "the server rejected the request"
                                        : "unknown status";
}

static bool receive_response(connection *s, dpss_response *response)
{
    unsigned char header[DPSS_RESPONSE_SIZE];
    if (!dpss_receive(s->fd, header, sizeof header))
        return dpss_get_fail(s->transfer, s->server, "receive", receive_failure());
    if (!dpss_parse_response(header, response))
        return dpss_get_fail(s->transfer, s->server, "receive", "unexpected reply; is this a dpss_server?");
    if (response->status != DPSS_DONE)
        return dpss_get_fail(s->transfer, s->server, "receive", status_text(response->status));
    return true;
}

/* Requests the server's next block. Sets *asked to false if no block is left. Returns false on failure. */
static bool request_next(connection *s, bool *asked)
{
    transfer *t = s->transfer;
    if (t->end_ns != 0 && now_ns() >= t->end_ns) {
        *asked = false;
        return true;
    }
    uint64_t block = atomic_fetch_add(&s->server->next, 1) * t->server_count + s->server_index;
    *asked = block < t->block_count;
    if (!*asked)
        return true;
    unsigned char bytes[DPSS_REQUEST_SIZE];
    dpss_put_request(&(dpss_request){DPSS_READ, block, t->block_size}, bytes);
    nl_write(t->log, NL_USAGE, "BlockRequestSend", "BLOCK.ID=%" PRIu64 " SERVER=%s CONNECTION=%u", block,
             s->server->name, s->number);
    if (!dpss_send(s->fd, bytes, sizeof bytes))
        return dpss_get_fail(t, s->server, "send", strerror(errno));
    return true;
}

static bool store(transfer *t, const char *data, size_t size, uint64_t offset)
{
    while (t->file >= 0 && size > 0) {
        ssize_t put = pwrite(t->file, data, size, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            if (!atomic_exchange(&t->failed, true))
                fprintf(stderr, "dpss_get: write the output: %s\n", strerror(errno));
            return false;
        }
        data += put;
        offset += (uint64_t)put;
        size -= (size_t)put;
    }
    return true;
}

/* Receives one block and logs each read. Returns false on failure. */
static bool receive_block(connection *s, char *buffer)
{
    transfer *t = s->transfer;
    dpss_response response;
    if (!receive_response(s, &response))
        return false;
    uint64_t offset = response.block * t->block_size;
    if (response.block >= t->block_count || response.size > t->block_size || offset + response.size > t->file_size)
        return dpss_get_fail(t, s->server, "receive", "unexpected block");
    size_t have = 0;
    while (have < response.size) {
        ssize_t got = recv(s->fd, buffer + have, (size_t)response.size - have, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? 0 : errno;
            return dpss_get_fail(t, s->server, "receive", receive_failure());
        }
        have += (size_t)got;
        nl_write(t->log, NL_USAGE, "BlockRead", "BLOCK.ID=%" PRIu64 " SERVER=%s READ.SZ=%zd", response.block,
                 s->server->name, got);
    }
    if (!store(t, buffer, have, offset))
        return false;
    nl_write(t->log, NL_USAGE, "BlockDone", "BLOCK.ID=%" PRIu64 " SERVER=%s CONNECTION=%u BLOCK.SZ=%zu", response.block,
             s->server->name, s->number, have);
    atomic_fetch_add(&s->server->blocks, 1);
    atomic_fetch_add(&s->server->bytes, have);
    atomic_store(&s->server->last_ns, now_ns());
    return true;
}

static void *run_connection(void *argument)
{
    connection *s = argument;
    transfer *t = s->transfer;
    char *buffer = malloc(t->block_size);
    bool good = buffer != NULL, asked = true;
    unsigned under_way = 0;
    while (good && !atomic_load(&t->failed)) {
        while (good && asked && under_way < t->depth) {
            good = request_next(s, &asked);
            under_way += asked;
        }
        if (!good || under_way == 0)
            break;
        good = receive_block(s, buffer);
        under_way--;
    }
    free(buffer);
    close(s->fd);
    return NULL;
}

static bool ask_size(transfer *t, server *srv, uint64_t *size)
{
    connection s = {.transfer = t, .server = srv, .fd = dpss_get_connect_to(t, srv)};
    unsigned char bytes[DPSS_REQUEST_SIZE];
    dpss_response response = {0};
    dpss_put_request(&(dpss_request){DPSS_SIZE, 0, t->block_size}, bytes);
    bool good = s.fd >= 0;
    if (good && !dpss_send(s.fd, bytes, sizeof bytes))
        good = dpss_get_fail(t, srv, "send", strerror(errno));
    good = good && receive_response(&s, &response);
    if (s.fd >= 0)
        close(s.fd);
    *size = response.size;
    return good;
}

static bool run_connections(transfer *t, unsigned per_server)
{
    size_t count = t->server_count * per_server;
    connection *connections = calloc(count, sizeof *connections);
    if (connections == NULL)
        return false;
    for (size_t i = 0; i < count && !atomic_load(&t->failed); i++) {
        size_t index = i % t->server_count;
        connections[i] =
            (connection){.transfer = t, .server = &t->servers[index], .server_index = index, .number = (unsigned)i};
        connections[i].fd = dpss_get_connect_to(t, &t->servers[index]);
        connections[i].running = connections[i].fd >= 0 &&
                                 pthread_create(&connections[i].thread, NULL, run_connection, &connections[i]) == 0;
    }
    for (size_t i = 0; i < count; i++)
        if (connections[i].running)
            pthread_join(connections[i].thread, NULL);
    free(connections);
    return !atomic_load(&t->failed);
}

static void print_table(const transfer *t, int64_t start_ns, bool json)
{
    if (json)
        printf("[\n");
    else
        printf("%-24s %8s %10s %10s\n", "server", "blocks", "MB", "MB/s");
    for (size_t i = 0; i < t->server_count; i++) {
        const server *srv = &t->servers[i];
        double megabytes = (double)srv->bytes / 1e6;
        double seconds = srv->blocks > 0 ? (double)(srv->last_ns - start_ns) / 1e9 : 0;
        double rate = seconds > 0 ? megabytes / seconds : 0;
        if (json)
            printf("  {\"server\": \"%s\", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64
                   ", \"megabytes_per_second\": %.3f}%s\n",
                   srv->name, (uint64_t)srv->blocks, (uint64_t)srv->bytes, rate, i + 1 < t->server_count ? "," : "");
        else
            printf("%-24s %8" PRIu64 " %10.1f %10.1f\n", srv->name, (uint64_t)srv->blocks, megabytes, rate);
    }
    if (json)
        printf("]\n");
}

typedef struct arguments {
    transfer transfer;
    unsigned connections, seconds;
    const char *output;
    const char *dest;
    bool json;
} arguments;

static void add_server(transfer *t, const char *address)
{
    t->servers = realloc(t->servers, (t->server_count + 1) * sizeof *t->servers);
    server *srv = &t->servers[t->server_count++];
    *srv = (server){.name = strdup(address), .address = strdup(address)};
    dpss_split_address(srv->address, &srv->host, &srv->port);
}

static void free_servers(transfer *t)
{
    for (size_t i = 0; i < t->server_count; i++) {
        free(t->servers[i].name);
        free(t->servers[i].address);
    }
    free(t->servers);
}

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Write the data to FILE (default: discard it)", 0},
    {"connections", 'c', "N", 0, "Number of connections to each server (default 1)", 0},
    {"pipeline", 'p', "N", 0, "Maximum number of outstanding requests per connection (default 2)", 0},
    {"block-size", 'b', "SIZE", 0, "Size of a block (default 64k)", 0},
    {"seconds", 't', "N", 0, "Stop sending requests after N seconds, and succeed with a partial file", 0},
    {"dest", 'd', "URL", 0, "Destination of events (default $NETLOGGER_DEST)", 0},
    {"json", 'j', NULL, 0, "Print the table as JSON", 0},
    {0},
};

static error_t dpss_get_parse(int key, char *text, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case 'o':
        a->output = text;
        return 0;
    case 'c':
        a->connections = (unsigned)arguments_number(state, text, units_none, 1, 64, "1 to 64");
        return 0;
    case 'p':
        a->transfer.depth = (unsigned)arguments_number(state, text, units_none, 1, 1024, "1 to 1024");
        return 0;
    case 'b':
        a->transfer.block_size =
            (uint32_t)arguments_number(state, text, units_size, 1, DPSS_BLOCK_MAX, "a size such as 64k, at most 16m");
        return 0;
    case 't':
        a->seconds = (unsigned)arguments_number(state, text, units_none, 1, 86400, "1 to 86400");
        return 0;
    case 'd':
        a->dest = text;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        add_server(&a->transfer, text);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_failure(state, 2, 0, "missing HOST; see dpss_get --help");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options, dpss_get_parse, "HOST[:PORT]...", "Fetch a file that is striped over several dpss_servers.", 0, 0, 0};

/* Opens a temporary file, which finish_output renames to the output file. Does nothing without an output file. */
static bool open_output(arguments *a, char *aside, size_t size)
{
    a->transfer.file = -1;
    if (a->output == NULL)
        return true;
    snprintf(aside, size, "%s.XXXXXX", a->output);
    a->transfer.file = mkostemp(aside, O_CLOEXEC);
    if (a->transfer.file < 0) {
        fprintf(stderr, "dpss_get: open %s: %s\n", aside, strerror(errno));
        return false;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(a->transfer.file, 0666 & ~mask); /* mkostemp gives permissions only to the owner */
    return true;
}

static bool finish_output(const arguments *a, const char *aside, bool good)
{
    if (a->transfer.file < 0)
        return good;
    if (close(a->transfer.file) != 0 || (good && rename(aside, a->output) != 0)) {
        fprintf(stderr, "dpss_get: write %s: %s\n", a->output, strerror(errno));
        good = false;
    }
    if (!good)
        unlink(aside);
    return good;
}

int main(int argc, char **argv)
{
    arguments a = {.connections = 1, .transfer = {.depth = 2, .block_size = 65536}};
    arguments_parse(&argp, argc, argv, &a);
    transfer *t = &a.transfer;
    char aside[4096];
    if (!open_output(&a, aside, sizeof aside))
        return 1;
    t->log = nl_open("dpss_get", a.dest); /* NULL on failure; nl_write then does nothing */

    bool good = ask_size(t, &t->servers[0], &t->file_size);
    t->block_count = (t->file_size + t->block_size - 1) / t->block_size;
    int64_t start_ns = now_ns();
    t->end_ns = a.seconds > 0 ? start_ns + a.seconds * NL_NS_PER_SECOND : 0;
    nl_write(t->log, NL_USAGE, "TransferStart", "FILE.SZ=%" PRIu64 " BLOCKS=%" PRIu64, t->file_size, t->block_count);
    good = good && run_connections(t, a.connections);
    nl_write(t->log, NL_USAGE, "TransferEnd", "FILE.SZ=%" PRIu64 " OK=%d", t->file_size, good);
    good = finish_output(&a, aside, good);
    if (good)
        print_table(t, start_ns, a.json);
    nl_close(t->log);
    free_servers(t);
    return good ? 0 : 1;
}
