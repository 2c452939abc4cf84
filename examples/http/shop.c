/*
 * A shop as four servers that log spans:
 *
 * - shop frontend STOCK PRICES: GET /order?ITEM asks both backends at the same time
 * - shop stock DATABASE: a backend, which queries the database
 * - prices.py: the other backend, in Python
 * - shop database: simulates a database. A query takes 10 to 30 ms, or ten times as long for the item "report".
 * - shop get FRONTEND PATH: sends a request
 *
 * The arguments are addresses of servers, [ADDRESS:]PORT. The context of a request passes from server to server in the
 * traceparent header, and from thread to thread as an nl_context. The events go to $NETLOGGER_DEST. Further settings
 * are environment variables:
 *
 *   SHOP_LISTEN      [ADDRESS:]PORT (default: a free port on loopback)
 *   SHOP_TIMEOUT_MS  the frontend repeats a call after this time (default: never)
 *   SHOP_POOL        number of connections from the stock server to the database (default 32)
 *   SHOP_QUERIES     number of queries for the item "list" (default 1)
 *   SHOP_WORKERS     number of queries that the database executes at a time (default 32)
 */
#include "http.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static nl_log *shop_log;
static const char *backends[2];
static int timeout_ms, query_count;
static sem_t connections, workers;

static int read_setting(const char *name, int initial)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : initial;
}

/* Returns whether the request is for this item. */
static bool is_for(const http_request *request, const char *item)
{
    const char *query = strchr(request->path, '?');
    return query != NULL && strcmp(query + 1, item) == 0;
}

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* ---- frontend ---- */

/* A call to a backend, in its own thread. */
typedef struct call {
    nl_context context; /* context of the Order span */
    const http_request *request;
    const char *server;
    int status;
    char body[HTTP_BODY_SIZE];
} call;

static void *call_backend(void *user)
{
    call *c = user;
    nl_context before = nl_context_attach(&c->context);
    for (int tries = 0; c->status == 0 && tries < 2; tries++) {
        NL_SPAN (shop_log, NL_USAGE, "Call", "SERVER", c->server) {
            c->status = http_get(c->server, timeout_ms, c->request->path, c->request->tracestate, c->body);
            if (c->status != 200)
                nl_span_set_status(c->status != 0 ? c->status : -1);
        }
    }
    nl_context_attach(&before);
    return NULL;
}

static int serve_order(const http_request *request, char body[HTTP_BODY_SIZE])
{
    call calls[2];
    pthread_t threads[2];
    bool good = true;
    nl_span order = nl_span_begin(shop_log, NL_USAGE, "Order", &request->caller, "PATH", request->path);
    for (int i = 0; i < 2; i++) {
        calls[i] = (call){.context = order.context, .request = request, .server = backends[i]};
        if (pthread_create(&threads[i], NULL, call_backend, &calls[i]) != 0)
            abort();
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        good = good && calls[i].status == 200;
    }
    nl_context before = nl_context_attach(&order.context);
    NL_SPAN (shop_log, NL_USAGE, "Render") {
        pause_ms(2);
        snprintf(body, HTTP_BODY_SIZE, "%.1000s, %.1000s\n", calls[0].body, calls[1].body);
    }
    nl_context_attach(&before);
    order.status = good ? 0 : -1;
    nl_span_end(&order, "BYTES", strlen(body));
    return good ? 200 : 502;
}

/* ---- stock and database ---- */

static int serve_stock(const http_request *request, char body[HTTP_BODY_SIZE])
{
    int status = 0;
    nl_context before = nl_context_attach(&request->caller);
    NL_SPAN (shop_log, NL_USAGE, "Stock", "PATH", request->path) {
        NL_EVENT(shop_log, NL_USAGE, "CacheMiss"); /* the event has the ID of the current span */
        for (int i = is_for(request, "list") ? query_count : 1; i > 0; i--) {
            sem_wait(&connections);
            status = http_get(backends[0], 0, request->path, request->tracestate, body);
            sem_post(&connections);
        }
        nl_span_set_status(status == 200 ? 0 : -1);
    }
    nl_context_attach(&before);
    return status == 200 ? 200 : 502;
}

static int serve_query(const http_request *request, char body[HTTP_BODY_SIZE])
{
    nl_span query = nl_span_begin(shop_log, NL_USAGE, "Query", &request->caller, "SQL", "SELECT count FROM stock");
    sem_wait(&workers);
    pause_ms((10 + random() % 20) * (is_for(request, "report") ? 10 : 1));
    sem_post(&workers);
    snprintf(body, HTTP_BODY_SIZE, "7 in stock");
    nl_span_end(&query, "ROWS", 1);
    return 200;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    http_handler *handler = strcmp(role, "frontend") == 0 && argc == 4 ? serve_order
                            : strcmp(role, "stock") == 0 && argc == 3  ? serve_stock
                            : strcmp(role, "database") == 0            ? serve_query
                                                                       : NULL;
    if (strcmp(role, "get") == 0 && argc == 4) {
        char body[HTTP_BODY_SIZE];
        nl_context caller;
        nl_traceparent_parse(NULL, 0, &caller); /* uses the environment variable TRACEPARENT */
        nl_context_attach(&caller);
        int status = http_get(argv[2], 0, argv[3], "", body);
        fputs(body, stdout);
        return status == 200 ? 0 : 1;
    }
    if (handler == NULL) {
        fprintf(stderr, "usage: shop frontend STOCK PRICES | stock DATABASE | database | get [ADDRESS:]PORT PATH\n");
        return 2;
    }
    for (int i = 2; i < argc && i < 4; i++)
        backends[i - 2] = argv[i];
    timeout_ms = read_setting("SHOP_TIMEOUT_MS", 0);
    query_count = read_setting("SHOP_QUERIES", 1);
    sem_init(&connections, 0, (unsigned)read_setting("SHOP_POOL", 32));
    sem_init(&workers, 0, (unsigned)read_setting("SHOP_WORKERS", 32));
    shop_log = nl_open(role, NULL);
    const char *server = getenv("SHOP_LISTEN");
    int status = http_serve(server != NULL ? server : "0", handler);
    return nl_close(shop_log) == NL_OK ? status : 1;
}
