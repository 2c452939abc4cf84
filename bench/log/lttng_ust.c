/*
 * An LTTng-UST tracepoint. The session daemon determines whether the tracepoint is enabled and where it writes.
 * bench/log/run creates the session and puts its name in $BENCH_LTTNG_SESSION. If this variable is not set, the
 * tracepoint is dormant.
 */
#include "measure.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"
#include <lttng/lttng.h>

static const char *session;

void side_open(const char *path)
{
    (void)path;
    session = getenv("BENCH_LTTNG_SESSION");
    if ((session != NULL) != (lttng_ust_tracepoint_enabled(bench, WriteData) != 0)) {
        fprintf(stderr, "the tracepoint is %s\n", session != NULL ? "not enabled" : "enabled");
        exit(1);
    }
}

inline void side_write(uint64_t i)
{
    lttng_ust_tracepoint(bench, WriteData, (long)i, (int)i, "abcdefghijklmn");
}

/* Returns the number of lost events that LTTng reports. The number is 0, because the channel blocks. */
static uint64_t discarded(void)
{
    struct lttng_domain domain = {0};
    domain.type = LTTNG_DOMAIN_UST;
    domain.buf_type = LTTNG_BUFFER_PER_UID;
    struct lttng_handle *handle = lttng_create_handle(session, &domain);
    struct lttng_channel *channels = NULL;
    int count = handle != NULL ? lttng_list_channels(handle, &channels) : -1;
    uint64_t lost = 0;
    if (count != 1 || lttng_channel_get_discarded_event_count(channels, &lost) != 0) {
        fprintf(stderr, "LTTng does not report how many events it lost\n");
        exit(1);
    }
    free(channels);
    lttng_destroy_handle(handle);
    return lost;
}

/* Stops the session like "lttng stop", but checks every 0.5 ms, not every 200 ms, whether all data is written. */
uint64_t side_close(void)
{
    if (session == NULL)
        return 0;
    if (lttng_stop_tracing_no_wait(session) < 0) {
        fprintf(stderr, "cannot stop tracing\n");
        exit(1);
    }
    while (lttng_data_pending(session) == 1)
        usleep(500);
    return discarded();
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
