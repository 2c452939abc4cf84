/*
 * dpss_get: fetches a file that is striped over several dpss_servers (block i comes from server i modulo their number),
 * over parallel connections, and says when each block was asked for, arrived bit by bit, and was complete.
 */
#define _GNU_SOURCE 1

#include "dpss_protocol.h"

#include <netlogger.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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
    char *name;    /* as it was given */
    char *address; /* cut into the next two */
    const char *host;
    const char *port;
    atomic_uint_least64_t next; /* how many of its blocks have been asked for, by any stream */
    atomic_uint_least64_t blocks;
    atomic_uint_least64_t bytes;
    atomic_int_least64_t last_ns; /* when its latest block was complete */
} server;

typedef struct transfer {
    server *servers;
    size_t server_count;
    uint64_t file_size;
    uint64_t block_count;
    uint32_t block_size;
    unsigned depth; /* requests under way at once on each connection */
    int file;       /* -1: what arrives is thrown away */
    int64_t end_ns; /* nothing is asked for after that; 0: all is */
    nl_log *log;
    atomic_bool failed;
} transfer;

/* One connection to one server. */
typedef struct stream {
    transfer *transfer;
    server *server;
    size_t server_index;
    unsigned number; /* among all, for the log */
    int fd;
    pthread_t thread;
    bool running;
} stream;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

static bool dpss_get_fail(transfer *t, const server *srv, const char *what, const char *problem)
{
    /* The first failure is the one to tell; what follows from it is not news. */
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
        dpss_get_fail(t, srv, "connect", strerror(errno));
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
    return status == DPSS_NO_BLOCK      ? "it has no such block"
           : status == DPSS_DISK_FAILED ? "it cannot read its disk"
           : status == DPSS_BAD_REQUEST ? "it does not take our request"
                                        : "an unknown status";
}

static bool receive_response(stream *s, dpss_response *response)
{
    unsigned char header[DPSS_RESPONSE_SIZE];
    if (!dpss_receive(s->fd, header, sizeof header))
        return dpss_get_fail(s->transfer, s->server, "receive", receive_failure());
    if (!dpss_parse_response(header, response))
        return dpss_get_fail(s->transfer, s->server, "receive", "that is no answer of a dpss_server");
    if (response->status != DPSS_DONE)
        return dpss_get_fail(s->transfer, s->server, "receive", status_text(response->status));
    return true;
}

/* Asks for the next of the server's blocks that nobody has asked for. False in *asked when there is none left. */
static bool request_next(stream *s, bool *asked)
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
    nl_write(t->log, NL_USAGE, "BlockRequestSend", "BLOCK.ID=%" PRIu64 " SERVER=%s STREAM=%u", block, s->server->name,
             s->number);
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

/* Receives one block, each read() an event. */
static bool receive_block(stream *s, char *buffer)
{
    transfer *t = s->transfer;
    dpss_response response;
    if (!receive_response(s, &response))
        return false;
    uint64_t offset = response.block * t->block_size;
    if (response.block >= t->block_count || response.size > t->block_size || offset + response.size > t->file_size)
        return dpss_get_fail(t, s->server, "receive", "a block that was not asked for");
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
    nl_write(t->log, NL_USAGE, "BlockDone", "BLOCK.ID=%" PRIu64 " SERVER=%s STREAM=%u BLOCK.SZ=%zu", response.block,
             s->server->name, s->number, have);
    atomic_fetch_add(&s->server->blocks, 1);
    atomic_fetch_add(&s->server->bytes, have);
    atomic_store(&s->server->last_ns, now_ns());
    return true;
}

static void *run_stream(void *argument)
{
    stream *s = argument;
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
    stream s = {.transfer = t, .server = srv, .fd = dpss_get_connect_to(t, srv)};
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

static bool run_streams(transfer *t, unsigned per_server)
{
    size_t count = t->server_count * per_server;
    stream *streams = calloc(count, sizeof *streams);
    if (streams == NULL)
        return false;
    for (size_t i = 0; i < count && !atomic_load(&t->failed); i++) {
        size_t index = i % t->server_count;
        streams[i] =
            (stream){.transfer = t, .server = &t->servers[index], .server_index = index, .number = (unsigned)i};
        streams[i].fd = dpss_get_connect_to(t, &t->servers[index]);
        streams[i].running =
            streams[i].fd >= 0 && pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]) == 0;
    }
    for (size_t i = 0; i < count; i++)
        if (streams[i].running)
            pthread_join(streams[i].thread, NULL);
    free(streams);
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
    unsigned streams, seconds;
    const char *output;
    const char *log;
    bool json;
} arguments;

static unsigned long parse_number(const char *name, const char *text, unsigned long maximum)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > maximum) {
        fprintf(stderr, "dpss_get: --%s: invalid number %s; use 1 to %lu\n", name, text, maximum);
        exit(2);
    }
    return value;
}

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

static const char usage[] =
    "usage: dpss_get [OPTION...] HOST[:PORT]...\n"
    "Fetch a file that is striped over several dpss_servers.\n\n"
    "  -o, --output=FILE       write the data to FILE (default: discard it)\n"
    "  -s, --streams=N         number of connections to each server (default 1)\n"
    "  -p, --pipeline=N        maximum number of outstanding requests per connection (default 2)\n"
    "  -b, --block-size=BYTES  size of a block (default 65536)\n"
    "  -t, --seconds=N         send no requests after N seconds; a partial file is a success\n"
    "  -d, --log=URL           destination of events (default $NETLOGGER_DEST)\n"
    "  -j, --json              print the table as JSON\n"
    "  -h, --help              print this help\n";

/* Reads the command line; exits when it is invalid. */
static void dpss_get_read_arguments(int argc, char **argv, arguments *a)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"streams", required_argument, NULL, 's'},
        {"pipeline", required_argument, NULL, 'p'},
        {"block-size", required_argument, NULL, 'b'},
        {"seconds", required_argument, NULL, 't'},
        {"log", required_argument, NULL, 'd'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    for (int option; (option = getopt_long(argc, argv, "o:s:p:b:t:d:jh", options, NULL)) != -1;)
        switch (option) {
        case 'o':
            a->output = optarg;
            break;
        case 's':
            a->streams = (unsigned)parse_number("streams", optarg, 64);
            break;
        case 'p':
            a->transfer.depth = (unsigned)parse_number("pipeline", optarg, 1024);
            break;
        case 'b':
            a->transfer.block_size = (uint32_t)parse_number("block-size", optarg, DPSS_BLOCK_MAX);
            break;
        case 't':
            a->seconds = (unsigned)parse_number("seconds", optarg, 86400);
            break;
        case 'd':
            a->log = optarg;
            break;
        case 'j':
            a->json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            exit(2);
        }
    if (optind == argc) {
        fputs("dpss_get: missing HOST; see dpss_get --help\n", stderr);
        exit(2);
    }
    for (int i = optind; i < argc; i++)
        add_server(&a->transfer, argv[i]);
}

/* The output is written aside, under a name that nobody can have put something in place of, and takes its own when it
 * is complete. */
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
    fchmod(a->transfer.file, 0666 & ~mask); /* nobody else could read it as mkostemp makes it */
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
    arguments a = {.streams = 1, .transfer = {.depth = 2, .block_size = 65536}};
    dpss_get_read_arguments(argc, argv, &a);
    transfer *t = &a.transfer;
    char aside[4096];
    if (!open_output(&a, aside, sizeof aside))
        return 1;
    t->log = nl_open("dpss_get", a.log);
    if (t->log == NULL && *nl_error_message() != '\0')
        fprintf(stderr, "dpss_get: %s; fetching without a log\n", nl_error_message());

    bool good = ask_size(t, &t->servers[0], &t->file_size);
    t->block_count = (t->file_size + t->block_size - 1) / t->block_size;
    int64_t start_ns = now_ns();
    t->end_ns = a.seconds > 0 ? start_ns + a.seconds * NL_NS_PER_SECOND : 0;
    nl_write(t->log, NL_USAGE, "TransferStart", "FILE.SZ=%" PRIu64 " BLOCKS=%" PRIu64, t->file_size, t->block_count);
    good = good && run_streams(t, a.streams);
    nl_write(t->log, NL_USAGE, "TransferEnd", "FILE.SZ=%" PRIu64 " OK=%d", t->file_size, good);
    good = finish_output(&a, aside, good);
    if (good)
        print_table(t, start_ns, a.json);
    if (nl_close(t->log) != NL_OK)
        fprintf(stderr, "dpss_get: %s\n", nl_error_message());
    free_servers(t);
    return good ? 0 : 1;
}
