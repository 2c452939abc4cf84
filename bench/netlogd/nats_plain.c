/*
 * The least that a client of NATS JetStream can do with the same messages: nats_plain HOST:PORT STREAM REPLICAS FILE...
 *
 * Publishes the blocks of files, one a message, those of the Nth file into a stream of its own, 128 under way at most,
 * and waits for all acknowledgements; then reads them all and acknowledges each. Prints the seconds of both.
 */
#include <nats/nats.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNDER_WAY = 128, FILES_MOST = 4 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(natsStatus status, const char *what)
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

int main(int argc, char **argv)
{
    natsConnection *connection;
    jsCtx *js;
    jsOptions options;
    char url[128], *data[FILES_MOST];
    size_t size[FILES_MOST], at[FILES_MOST] = {0};
    int files = argc - 4, count[FILES_MOST] = {0};
    snprintf(url, sizeof url, "nats://%s", argv[1]);
    must(natsConnection_ConnectTo(&connection, url), "connect");
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = UNDER_WAY;
    options.PublishAsync.StallWait = 60000;
    must(natsConnection_JetStream(&js, connection, &options), "JetStream");
    char names[FILES_MOST][64], subjects[FILES_MOST][64];
    for (int i = 0; i < files; i++) {
        data[i] = read_file(argv[4 + i], &size[i]);
        snprintf(names[i], sizeof names[i], "%s-%d", argv[2], i + 1);
        snprintf(subjects[i], sizeof subjects[i], "%s.%d", argv[2], i + 1);
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        config.Name = names[i];
        config.Subjects = (const char *[]){subjects[i]};
        config.SubjectsLen = 1;
        config.Replicas = atoi(argv[3]);
        must(js_AddStream(NULL, js, &config, NULL, NULL), "add a stream");
    }
    double start = now();
    for (int left = files; left > 0;) {
        left = 0;
        for (int i = 0; i < files; i++) {
            if (at[i] == size[i])
                continue;
            uint16_t header;
            uint32_t payload;
            memcpy(&header, data[i] + at[i] + 4, sizeof header);
            memcpy(&payload, data[i] + at[i] + 12, sizeof payload);
            jsPubOptions publish;
            char id[64];
            jsPubOptions_Init(&publish);
            snprintf(id, sizeof id, "%d-%zu", i, at[i]);
            publish.MsgId = id;
            must(js_PublishAsync(js, subjects[i], data[i] + at[i], (int)(header + payload), &publish), "publish");
            at[i] += header + payload;
            count[i]++;
            left++;
        }
    }
    must(js_PublishAsyncComplete(js, NULL), "acknowledgements");
    double published = now() - start;
    start = now();
    for (int i = 0; i < files; i++) {
        natsSubscription *subscription;
        must(js_PullSubscribe(&subscription, js, subjects[i], "plain", NULL, NULL, NULL), "subscribe");
        for (int left = count[i]; left > 0;) {
            natsMsgList list;
            must(natsSubscription_Fetch(&list, subscription, UNDER_WAY, 5000, NULL), "fetch");
            left -= list.Count;
            for (int m = 0; m < list.Count; m++)
                natsMsg_Ack(list.Msgs[m], NULL);
            natsMsgList_Destroy(&list);
        }
        natsConnection_Flush(connection);
        natsSubscription_Destroy(subscription);
    }
    printf("%.6f %.6f\n", published, now() - start);
    return 0;
}
