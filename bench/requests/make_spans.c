/*
 * Writes blocks of records to standard output, for bench/requests/run: make_spans SPANS. A frontend calls two backends
 * at the same time, and one backend queries a database twice. Each request has eight spans with explicit identifiers,
 * and therefore sixteen records. A request begins every 8 us, and 480 requests are in progress at a time.
 */
#include "record/block_write.h"

#include <inttypes.h>
#include <netlogger.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS = 8, DELAY = 32 /* requests that begin between two steps of one request */ };

static const struct {
    const char *name, *host, *prog;
    unsigned span, parent; /* IDs; a parent of 0 means no parent */
} spans[SPANS] = {
    {"Page", "web", "frontend", 1, 0},   {"CallUsers", "web", "frontend", 2, 1}, {"CallItems", "web", "frontend", 3, 1},
    {"Users", "users", "backend", 4, 2}, {"Items", "items", "backend", 5, 3},    {"Query", "items", "backend", 6, 5},
    {"Sql", "db", "database", 7, 6},     {"Render", "web", "frontend", 8, 1},
};

/* The spans of a request as they begin (positive) and end (negative), in order of time. */
static const int steps[2 * SPANS] = {1, 2, 3, 4, 5, 6, -4, -2, 7, -7, -6, -5, -3, 8, -8, -1};

static void write_out(nl_block_writer *w)
{
    static nl_buffer out;
    static nl_block_identity identity;
    if (!nl_block_finish(w, &identity, 0, &out) || fwrite(out.data, 1, out.size, stdout) != out.size)
        exit(1);
    out.size = 0;
}

static void add_id(nl_record *r, const char *name, uint64_t id, int digits)
{
    char text[40];
    int size = snprintf(text, sizeof text, "%0*" PRIx64, digits, id);
    nl_record_add_string(r, name, text, (size_t)size);
}

static void put_step(nl_block_writer *w, nl_record *r, uint64_t request, unsigned step, int64_t time_ns)
{
    unsigned span = (unsigned)abs(steps[step]) - 1;
    char event[32];
    int size = snprintf(event, sizeof event, "%s.%s", spans[span].name, steps[step] > 0 ? "start" : "end");
    nl_record_clear(r);
    nl_record_set_time(r, time_ns);
    nl_record_set_host(r, spans[span].host, strlen(spans[span].host));
    nl_record_set_prog(r, spans[span].prog, strlen(spans[span].prog));
    nl_record_set_level(r, NL_USAGE);
    nl_record_set_event(r, event, (size_t)size);
    add_id(r, "TRACE.ID", request + 1, 32);
    add_id(r, "SPAN.ID", request * 16 + spans[span].span, 16);
    if (spans[span].parent != 0)
        add_id(r, "PARENT.ID", request * 16 + spans[span].parent, 16);
    if (!nl_block_put(w, r))
        exit(1);
    if (nl_block_is_full(w))
        write_out(w);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const int64_t begin_ns = INT64_C(1767225600000000000);
    uint64_t requests = strtoull(argv[1], NULL, 10) / SPANS;
    static nl_block_writer w;
    nl_record *r = nl_record_new();
    for (uint64_t tick = 0; tick < requests + (2 * SPANS - 1) * DELAY; tick++)
        for (unsigned step = 2 * SPANS; step-- > 0;)
            if (tick >= (uint64_t)step * DELAY && tick - (uint64_t)step * DELAY < requests)
                put_step(&w, r, tick - (uint64_t)step * DELAY, step,
                         begin_ns + (int64_t)tick * 8000 + (int64_t)(2 * SPANS - step) * 100);
    write_out(&w);
    return fflush(stdout) != 0;
}
