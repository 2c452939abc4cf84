/*
 * A server with a pool of threads, for nlkernel trace: worker_pool REDIS-PORT WORKERS reply|return. The main thread
 * receives HTTP requests (GET /NUMBER) and puts them into a queue. A worker takes one, sends GET and SET to Redis over
 * its own connection, and sends the reply, or returns the request to the main thread, which sends the reply.
 *
 * Prints the port on which it listens. For each request, it then prints the number and the port of the connection to
 * Redis, in the order in which the worker used it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct job {
    int socket, number;
    struct job *next;
} job;

typedef struct queue {
    job *first, **last;
} queue;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static queue waiting = {NULL, &waiting.first}, done = {NULL, &done.first};
static int redis_port, returned = -1;

static void put_job(queue *to, job *j)
{
    j->next = NULL;
    *to->last = j;
    to->last = &j->next;
}

static job *take_job(queue *from)
{
    job *j = from->first;
    if (j != NULL && (from->first = j->next) == NULL)
        from->last = &from->first;
    return j;
}

static void require(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    require(getsockname(fd, (struct sockaddr *)&address, &size) == 0, "getsockname");
    return ntohs(address.sin_port);
}

static void send_reply(const job *j)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    require(write(j->socket, reply, strlen(reply)) == (ssize_t)strlen(reply), "reply");
}

static void ask_redis(int redis, const char *request)
{
    char reply[256];
    require(write(redis, request, strlen(request)) == (ssize_t)strlen(request), "redis");
    require(read(redis, reply, sizeof reply) > 0, "redis");
}

static void *work(void *argument)
{
    struct sockaddr_in address = loopback(redis_port);
    int redis = socket(AF_INET, SOCK_STREAM, 0);
    require(connect(redis, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (waiting.first == NULL)
            pthread_cond_wait(&filled, &mutex);
        job *j = take_job(&waiting);
        pthread_mutex_unlock(&mutex);
        ask_redis(redis, "*2\r\n$3\r\nGET\r\n$4\r\nitem\r\n");
        char line[64];
        int size = snprintf(line, sizeof line, "%d %d\n", j->number, port_of(redis));
        require(write(STDOUT_FILENO, line, (size_t)size) == size, "stdout");
        ask_redis(redis, "*3\r\n$3\r\nSET\r\n$4\r\nitem\r\n$1\r\nx\r\n");
        if (returned < 0) {
            send_reply(j);
            free(j);
            continue;
        }
        pthread_mutex_lock(&mutex);
        put_job(&done, j);
        pthread_mutex_unlock(&mutex);
        require(eventfd_write(returned, 1) == 0, "eventfd");
    }
    return argument;
}

static void reply_to_done(void)
{
    eventfd_t count;
    eventfd_read(returned, &count);
    for (;;) {
        pthread_mutex_lock(&mutex);
        job *j = take_job(&done);
        pthread_mutex_unlock(&mutex);
        if (j == NULL)
            break;
        send_reply(j);
        free(j);
    }
}

static void receive(int socket)
{
    char text[1024];
    ssize_t size = read(socket, text, sizeof text - 1);
    if (size <= 0) {
        close(socket);
        return;
    }
    text[size] = '\0';
    job *j = calloc(1, sizeof *j);
    j->socket = socket;
    require(sscanf(text, "GET /%d", &j->number) == 1, "request");
    pthread_mutex_lock(&mutex);
    put_job(&waiting, j);
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&filled);
}

static void watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    require(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

int main(int argc, char **argv)
{
    require(argc == 4, "usage");
    redis_port = atoi(argv[1]);
    if (strcmp(argv[3], "return") == 0)
        returned = eventfd(0, 0);
    int listening = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0);
    struct sockaddr_in address = loopback(0);
    require(bind(listening, (struct sockaddr *)&address, sizeof address) == 0 && listen(listening, 200) == 0, "listen");
    for (int i = 0; i < atoi(argv[2]); i++) {
        pthread_t thread;
        require(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create");
    }
    watch(loop, listening);
    if (returned >= 0)
        watch(loop, returned);
    dprintf(STDOUT_FILENO, "%d\n", port_of(listening));
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(loop, events, 64, -1);
        require(count >= 0 || errno == EINTR, "epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listening)
                watch(loop, accept(listening, NULL, NULL));
            else if (events[i].data.fd == returned)
                reply_to_done();
            else
                receive(events[i].data.fd);
        }
    }
}
