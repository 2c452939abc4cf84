/*
 * A minimal NATS JetStream client for comparison with netlogd (bench/netlogd/nats): nats_plain HOST:PORT STREAM
 * REPLICAS FILE...
 *
 * The client publishes the blocks of the files as messages and waits for all acknowledgements. Each file has its own
 * stream. At most 128 messages are outstanding. Then the client reads and acknowledges all messages. It prints the
 * duration of both phases in seconds.
 */
#include <nats/nats.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNDER_WAY = 128, FILES_MAX = 4 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect_ok(natsStatus status, const char *what)
{
    if (status == NATS_OK)
        return;
    fprintf(stderr, "nats_plain: %s: %s\n", what, natsStatus_GetText(status));
    exit(1);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        exit(1);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size);
    if (data == NULL || fread(data, 1, *size, file) != *size)
        exit(1);
    fclose(file);
    return data;
}

/* The messages of one file, and the position of the next message. */
typedef struct source {
    char *data, subject[64];
    size_t size, at;
    int count;
} source;

static void add_stream(jsCtx *js, source *s, const char *name, int replicas)
{
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = (const char *[]){s->subject};
    config.SubjectsLen = 1;
    config.Replicas = replicas;
    expect_ok(js_AddStream(NULL, js, &config, NULL, NULL), "add a stream");
}

/* Publishes the file's next block. The block header has the header size at byte 4 and the payload size at byte 12. */
static void publish_next(jsCtx *js, source *s)
{
    uint16_t header;
    uint32_t payload;
    memcpy(&header, s->data + s->at + 4, sizeof header);
    memcpy(&payload, s->data + s->at + 12, sizeof payload);
    jsPubOptions publish;
    char id[96];
    jsPubOptions_Init(&publish);
    snprintf(id, sizeof id, "%s-%zu", s->subject, s->at);
    publish.MsgId = id;
    expect_ok(js_PublishAsync(js, s->subject, s->data + s->at, (int)(header + payload), &publish), "publish");
    s->at += header + payload;
    s->count++;
}

/* Publishes one block of each file in turn. */
static void publish_all(jsCtx *js, source *sources, int count)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < count; i++) {
            if (sources[i].at == sources[i].size)
                continue;
            publish_next(js, &sources[i]);
            more = true;
        }
    }
    expect_ok(js_PublishAsyncComplete(js, NULL), "acknowledgements");
}

static void fetch_all(natsConnection *connection, jsCtx *js, const source *s)
{
    natsSubscription *subscription;
    expect_ok(js_PullSubscribe(&subscription, js, s->subject, "plain", NULL, NULL, NULL), "subscribe");
    for (int left = s->count; left > 0;) {
        natsMsgList list;
        expect_ok(natsSubscription_Fetch(&list, subscription, UNDER_WAY, 5000, NULL), "fetch");
        left -= list.Count;
        for (int m = 0; m < list.Count; m++)
            natsMsg_Ack(list.Msgs[m], NULL);
        natsMsgList_Destroy(&list);
    }
    natsConnection_Flush(connection);
    natsSubscription_Destroy(subscription);
}

int main(int argc, char **argv)
{
    int count = argc - 4;
    if (count < 1 || count > FILES_MAX) {
        fprintf(stderr, "usage: nats_plain HOST:PORT STREAM REPLICAS FILE... (at most %d files)\n", FILES_MAX);
        return 2;
    }
    natsConnection *connection;
    jsCtx *js;
    jsOptions options;
    char url[128];
    source sources[FILES_MAX] = {0};
    snprintf(url, sizeof url, "nats://%s", argv[1]);
    expect_ok(natsConnection_ConnectTo(&connection, url), "connect");
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = UNDER_WAY;
    options.PublishAsync.StallWait = 60000;
    expect_ok(natsConnection_JetStream(&js, connection, &options), "JetStream");
    for (int i = 0; i < count; i++) {
        char name[64];
        sources[i].data = read_file(argv[4 + i], &sources[i].size);
        snprintf(name, sizeof name, "%s-%d", argv[2], i + 1);
        snprintf(sources[i].subject, sizeof sources[i].subject, "%s.%d", argv[2], i + 1);
        add_stream(js, &sources[i], name, atoi(argv[3]));
    }
    double start = now();
    publish_all(js, sources, count);
    double published = now() - start;
    start = now();
    for (int i = 0; i < count; i++)
        fetch_all(connection, js, &sources[i]);
    printf("%.6f %.6f\n", published, now() - start);
    return 0;
}
