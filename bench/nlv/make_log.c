/*
 * Writes a log for bench/nlv/run: make_log FILE RECORDS [KIND]. Without a kind, a client fetches blocks from four
 * servers in eight steps, as in examples/dpss. A record has about 125 bytes. The records are nearly in order of time,
 * as in the log of a collector. The log also contains the load of each host and some rare events. Each other kind of
 * log makes nlv draw another view: "points" has 300 kinds of events, "curves" has the load of 4 hosts, "strips" has the
 * load of 20 hosts, and "bars" has single records of 12 spans with durations.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, FLIGHT = 64 /* outstanding blocks */ };

static const char *const events[STEPS] = {"BlockRequestSend", "BlockRequestRecv", "DiskReadStart", "DiskReadEnd",
                                          "BlockSendStart",   "BlockSendEnd",     "BlockRead",     "BlockDone"};

typedef struct block {
    uint64_t id;
    uint64_t next_ns;
    unsigned step;
} block;

static uint64_t state = 88172645463325252u;

static uint64_t make_log_draw(uint64_t maximum) /* xorshift (G. Marsaglia, 2003) */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % maximum;
}

/* Prints a time, given in nanoseconds after 2026-01-01T00:00:00, with microseconds. */
static void put_time(FILE *file, uint64_t ns)
{
    uint64_t us = ns / 1000, second = us / 1000000, day = second / 86400;
    fprintf(file, "DATE=202601%02u%02u%02u%02u.%06u ", (unsigned)(day % 31 + 1), (unsigned)(second / 3600 % 24),
            (unsigned)(second / 60 % 60), (unsigned)(second % 60), (unsigned)(us % 1000000));
}

static void put_step(FILE *file, const block *b)
{
    unsigned server = (unsigned)(b->id % 4);
    int on_client = b->step == 0 || b->step >= 6;
    put_time(file, b->next_ns);
    if (on_client)
        fprintf(file, "HOST=client.lbl.gov PROG=dpss_get ");
    else
        fprintf(file, "HOST=dpss%u.lbl.gov PROG=dpss_server ", server + 1);
    fprintf(file, "LVL=Usage NL.EVNT=%s BLOCK.ID=%" PRIu64 " SIZE=%u\n", events[b->step], b->id, 65536u);
}

static void put_other(FILE *file, const char *kind, uint64_t i)
{
    const unsigned hosts = strcmp(kind, "curves") == 0 ? 4 : 20, host = (unsigned)(i % hosts);
    put_time(file, i * 40000 + make_log_draw(30000));
    if (strcmp(kind, "points") == 0)
        fprintf(file, "HOST=host%u PROG=app LVL=Usage NL.EVNT=kind%03" PRIu64 " SIZE=%" PRIu64 "\n", host,
                make_log_draw(300), make_log_draw(10000));
    else if (strcmp(kind, "bars") == 0)
        fprintf(file, "HOST=host%u PROG=app LVL=Usage NL.EVNT=Span%02" PRIu64 " TID=%u DUR=0.%06" PRIu64 "\n", host,
                make_log_draw(12), host, 10 + make_log_draw(700));
    else
        fprintf(file, "HOST=host%u PROG=nlsensor LVL=System NL.EVNT=CpuLoad CPU.BUSY=%" PRIu64 ".%" PRIu64 "\n", host,
                make_log_draw(100), make_log_draw(10));
}

static void put_load(FILE *file, uint64_t ns, unsigned host)
{
    put_time(file, ns);
    fprintf(file, "HOST=dpss%u.lbl.gov PROG=nlsensor LVL=System NL.EVNT=CpuLoad CPU.BUSY=%u.%u NODE.ID=%u\n", host + 1,
            (unsigned)make_log_draw(100), (unsigned)make_log_draw(10), host);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        return 2;
    FILE *file = fopen(argv[1], "w");
    uint64_t records = strtoull(argv[2], NULL, 10), id = 0, now_ns = 0;
    static const unsigned usual_us[STEPS] = {0, 300, 100, 4000, 50, 900, 1200, 80};
    static block flight[FLIGHT];
    if (file == NULL)
        return 1;
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    for (unsigned i = 0; i < FLIGHT; i++)
        flight[i] = (block){id++, make_log_draw(7000000), 0};
    for (uint64_t i = 0; argc == 4 && i < records; i++)
        put_other(file, argv[3], i);
    for (uint64_t i = 0; argc == 3 && i < records; i++) {
        block *next = &flight[0];
        for (unsigned j = 1; j < FLIGHT; j++)
            if (flight[j].next_ns < next->next_ns)
                next = &flight[j];
        now_ns = next->next_ns;
        if (i % 400 == 399) {
            put_load(file, now_ns, (unsigned)make_log_draw(4));
            continue;
        }
        if (i % 1000003 == 500000) {
            put_time(file, now_ns);
            fprintf(file, "HOST=dpss1.lbl.gov PROG=kernel LVL=Warning NL.EVNT=TcpRetransmit TCP.COUNT=1\n");
            continue;
        }
        put_step(file, next);
        if (++next->step == STEPS) {
            uint64_t pause_ns = 1000 + make_log_draw(20000); /* in every fourth interval of 2 s, pauses are longer */
            pause_ns *= now_ns / UINT64_C(2000000000) % 4 == 3 ? 5000 : 1;
            *next = (block){id++, now_ns + pause_ns, 0};
            continue;
        }
        uint64_t us = usual_us[next->step] / 2 + make_log_draw(usual_us[next->step] + 1);
        if (make_log_draw(100000) == 0)
            us *= 100; /* an outlier */
        next->next_ns = now_ns + us * 1000;
    }
    return fclose(file) == 0 ? 0 : 1;
}
