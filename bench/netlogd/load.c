/*
 * Produces the load for bench/netlogd/run, which compiles this program.
 *
 * - load make FORMAT COUNT FILE: writes COUNT records as ulm or nlb. A record has about 125 bytes as ulm.
 * - load text FILE PORT CONNECTIONS OUTPUT [CA]: opens CONNECTIONS connections, and then sends FILE's lines over them.
 *   Prints the seconds from the first byte until OUTPUT has as many bytes as FILE.
 * - load blocks FILE PORT [CA]: sends FILE's blocks. Prints the seconds until all blocks are acknowledged.
 * - load idle FILE PORT CONNECTIONS [CA]: opens CONNECTIONS connections, each of which sends FILE and then nothing.
 *   Prints "idle", and ends when its standard input ends.
 *
 * If CA is given, the connections use TLS. PORT is a port on this machine.
 */
#include <netlogger.h>
#if __has_include("record/encoder.h") /* for comparisons with older revisions */
#include "record/encoder.h"
#include "record/format.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNK = 256 << 10,      /* bytes per call of send on a single connection */
    SMALL_CHUNK = 16 << 10, /* bytes per call of send on one of many connections */
    ENDED_S = 60,           /* seconds after which an output that does not grow counts as failed */
    ACK_SIZE = 16,
};

typedef struct client {
    int fd;
    SSL *ssl;
    const char *at, *end; /* the unsent bytes */
    char ack[ACK_SIZE];   /* the frame received so far */
    size_t ack_size;
    uint64_t acknowledged;
} client;

static SSL_CTX *context;

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- records ---- */

/* Makes record number i. The records come from four hosts, one microsecond apart. */
static void make_record(nl_record *record, uint64_t i)
{
    char host[32], file[32];
    nl_record_clear(record);
    nl_record_set_time(record, INT64_C(954415400000000000) + (int64_t)i * 1000);
    nl_record_set_host(record, host, (size_t)snprintf(host, sizeof host, "dpss%d.lbl.gov", (int)(i % 4)));
    nl_record_set_prog(record, "testProg", 8);
    nl_record_set_level(record, NL_USAGE);
    nl_record_set_event(record, "WriteData", 9);
    nl_record_add_int(record, "SEND.SZ", 10000 + (int64_t)(i % 49332));
    nl_record_add_int(record, "BLOCK.ID", (int64_t)i);
    nl_record_add_string(record, "FILE", file, (size_t)snprintf(file, sizeof file, "/tmp/a%d", (int)(i % 10)));
}

static void load_make(nl_format format, uint64_t count, const char *name)
{
    static const unsigned char stream[16] = "bench";
    FILE *file = fopen(name, "we");
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = format});
    nl_record *record = nl_record_new();
    nl_buffer bytes = {0};
    if (file == NULL)
        die(name);
    nl_encoder_set_stream(encoder, stream, 0);
    for (uint64_t i = 0; i < count; i++) {
        make_record(record, i);
        nl_encoder_put(encoder, record);
        if (nl_encoder_size(encoder) < CHUNK && i + 1 < count)
            continue;
        bytes.size = 0;
        nl_encoder_finish(encoder, &bytes);
        if (fwrite(bytes.data, bytes.size, 1, file) != 1)
            die(name);
    }
    if (fclose(file) != 0)
        die(name);
    nl_buffer_free(&bytes);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

/* ---- sending ---- */

static nl_string map(const char *name)
{
    struct stat status;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        die(name);
    size_t size = (size_t)status.st_size;
    char *data = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED)
        die(name);
    close(fd);
    return (nl_string){data, size};
}

static void secure(client *c)
{
    c->ssl = SSL_new(context);
    if (c->ssl == NULL || SSL_set_fd(c->ssl, c->fd) != 1 || SSL_set1_host(c->ssl, "localhost") != 1 ||
        SSL_connect(c->ssl) != 1) {
        fprintf(stderr, "load: cannot start TLS\n");
        exit(1);
    }
}

static void open_client(client *c, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (context != NULL)
        secure(c);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
}

/* Opens connections and divides data among them at line boundaries. */
static client *open_clients(size_t count, uint16_t port, nl_string data)
{
    client *clients = calloc(count, sizeof *clients);
    if (clients == NULL)
        die("clients");
    const char *at = data.data, *end = data.data + data.size;
    for (size_t i = 0; i < count; i++) {
        const char *to = end;
        if (i + 1 < count) {
            to = data.data + data.size / count * (i + 1);
            to = (const char *)memchr(to, '\n', (size_t)(end - to)) + 1;
        }
        clients[i].at = at;
        clients[i].end = at = to;
        open_client(&clients[i], port);
    }
    return clients;
}

/* Sends as many bytes as the kernel accepts, up to a maximum. */
static void send_some(client *c, size_t maximum)
{
    size_t left = (size_t)(c->end - c->at), size = left < maximum ? left : maximum, put = 0;
    if (c->ssl != NULL) {
        if (SSL_write_ex(c->ssl, c->at, size, &put) != 1 && SSL_get_error(c->ssl, 0) == SSL_ERROR_SSL)
            die("TLS");
    } else {
        ssize_t sent = send(c->fd, c->at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            die("send");
        put = sent > 0 ? (size_t)sent : 0;
    }
    c->at += put;
}

/* Reads the collector's frames and keeps the latest acknowledgement. Returns false if no more data is available. */
static bool listen_some(client *c)
{
    char *at = c->ack + c->ack_size;
    size_t space = ACK_SIZE - c->ack_size, got = 0;
    if (c->ssl != NULL) {
        SSL_read_ex(c->ssl, at, space, &got);
    } else {
        ssize_t came = recv(c->fd, at, space, 0);
        if (came == 0)
            die("the collector closed the connection");
        got = came > 0 ? (size_t)came : 0;
    }
    c->ack_size += got;
    if (c->ack_size == ACK_SIZE) {
        memcpy(&c->acknowledged, c->ack + 8, sizeof c->acknowledged);
        c->ack_size = 0;
    }
    return got > 0;
}

static int watch(client *clients, size_t count, uint32_t events)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = events, .data.ptr = &clients[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, clients[i].fd, &event) != 0)
            die("epoll");
    }
    return poll;
}

/* Sends the data of all clients, one chunk of a ready client at a time. */
static void send_all(client *clients, size_t count)
{
    int poll = watch(clients, count, EPOLLOUT);
    struct epoll_event events[512];
    size_t maximum = count == 1 ? CHUNK : SMALL_CHUNK;
    for (size_t left = count; left > 0;) {
        int ready = epoll_wait(poll, events, 512, -1);
        for (int i = 0; i < ready; i++) {
            client *c = events[i].data.ptr;
            send_some(c, maximum);
            if (c->at < c->end)
                continue;
            epoll_ctl(poll, EPOLL_CTL_DEL, c->fd, NULL);
            left--;
        }
    }
    close(poll);
}

static size_t size_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? (size_t)status.st_size : 0;
}

static void wait_for_size(const char *name, size_t size)
{
    size_t seen = 0, now;
    int64_t since_ns = now_ns();
    while ((now = size_of(name)) < size) {
        if (now != seen)
            since_ns = now_ns();
        seen = now;
        if (now_ns() - since_ns > ENDED_S * INT64_C(1000000000)) {
            fprintf(stderr, "load: %s no longer grows; it has %zu of %zu bytes\n", name, now, size);
            exit(1);
        }
        usleep(500);
    }
}

static void send_text(const char *name, uint16_t port, size_t count, const char *output)
{
    nl_string data = map(name);
    client *clients = open_clients(count, port, data);
    int64_t from_ns = now_ns();
    send_all(clients, count);
    wait_for_size(output, data.size);
    printf("%.6f\n", (double)(now_ns() - from_ns) / 1e9);
}

static uint64_t count_blocks(nl_string data)
{
    uint64_t blocks = 0;
    for (size_t at = 0; at < data.size; blocks++) {
        uint16_t header;
        uint32_t payload;
        memcpy(&header, data.data + at + 4, sizeof header);
        memcpy(&payload, data.data + at + 12, sizeof payload);
        at += header + payload;
    }
    return blocks;
}

static void send_blocks(const char *name, uint16_t port)
{
    nl_string data = map(name);
    uint64_t blocks = count_blocks(data);
    client *c = open_clients(1, port, data);
    int poll = watch(c, 1, EPOLLIN | EPOLLOUT);
    struct epoll_event event;
    int64_t from_ns = now_ns();
    while (c->acknowledged < blocks) {
        if (epoll_wait(poll, &event, 1, -1) != 1)
            die("epoll");
        if (event.events & (EPOLLIN | EPOLLHUP))
            while (listen_some(c))
                ;
        if (c->at < c->end) {
            send_some(c, CHUNK);
        } else {
            event = (struct epoll_event){.events = EPOLLIN, .data.ptr = c};
            epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &event);
        }
    }
    printf("%.6f\n", (double)(now_ns() - from_ns) / 1e9);
}

static void stay_idle(const char *name, uint16_t port, size_t count)
{
    nl_string data = map(name);
    client *clients = calloc(count, sizeof *clients);
    if (clients == NULL)
        die("clients");
    for (size_t i = 0; i < count; i++) {
        clients[i].at = data.data;
        clients[i].end = data.data + data.size;
        open_client(&clients[i], port);
    }
    send_all(clients, count);
    printf("idle\n");
    fflush(stdout);
    while (getchar() != EOF)
        ;
}

static void use_tls(const char *ca)
{
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_load_verify_file(context, ca) != 1)
        die(ca);
}

int main(int argc, char **argv)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (argc < 4) {
        fprintf(stderr, "usage: load make FORMAT COUNT FILE | load text|blocks|idle FILE PORT ... [CA]\n");
        return 2;
    }
    const char *verb = argv[1];
    if (strcmp(verb, "make") == 0) {
        load_make(nl_format_parse(argv[2]), strtoull(argv[3], NULL, 10), argv[4]);
        return 0;
    }
    uint16_t port = (uint16_t)atoi(argv[3]);
    int plain = strcmp(verb, "text") == 0 ? 6 : strcmp(verb, "blocks") == 0 ? 4 : 5;
    if (argc > plain)
        use_tls(argv[plain]);
    if (strcmp(verb, "text") == 0)
        send_text(argv[2], port, strtoull(argv[4], NULL, 10), argv[5]);
    else if (strcmp(verb, "blocks") == 0)
        send_blocks(argv[2], port);
    else
        stay_idle(argv[2], port, strtoull(argv[4], NULL, 10));
    return 0;
}
