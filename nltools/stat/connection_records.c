#include "config.h"

#include "base/text.h"
#include "stat/connection_records.h"

#include "record/format.h"
#include "transport/writer.h"

#include <string.h>

static const char *const limit_events[CAUSE_COUNT] = {
    [CAUSE_HANDSHAKE] = "TcpLimit.Handshake",
    [CAUSE_SENDER_IDLE] = "TcpLimit.SenderIdle",
    [CAUSE_SENDER_HOST] = "TcpLimit.SendingHost",
    [CAUSE_SEND_BUFFER] = "TcpLimit.SendBuffer",
    [CAUSE_RECEIVER_PROGRAM] = "TcpLimit.ReceivingProgram",
    [CAUSE_RECEIVER_HOST] = "TcpLimit.ReceivingHost",
    [CAUSE_RECEIVE_BUFFER] = "TcpLimit.ReceiveBuffer",
    [CAUSE_SLOW_START] = "TcpLimit.SlowStart",
    [CAUSE_LOSS] = "TcpLimit.Loss",
    [CAUSE_PATH] = "TcpLimit.PathRate",
    [CAUSE_PATH_QUEUE] = "TcpLimit.PathQueue",
    [CAUSE_POLICED] = "TcpLimit.PolicedRate",
    [CAUSE_REVERSE] = "TcpLimit.ReversePath",
    [CAUSE_UNKNOWN] = "TcpLimit.Unknown",
};

typedef struct records_output {
    nl_writer *writer;
    nl_record *record;
    bool ok;
} records_output;

static void begin_record(records_output *o, const connection_result *r, const char *event, int64_t time_ns)
{
    const char *host = r->ends == ENDS_RECEIVER ? r->peer_host : r->host;
    nl_record_clear(o->record);
    nl_record_set_time(o->record, time_ns);
    nl_record_set_level(o->record, NL_USAGE);
    nl_record_set_host(o->record, host, strlen(host));
    nl_record_set_prog(o->record, "nlstat", strlen("nlstat"));
    nl_record_set_event(o->record, event, strlen(event));
    nl_record_add_text(o->record, "TCP.LOCAL", r->local);
    nl_record_add_text(o->record, "TCP.PEER", r->peer);
}

static void end_record(records_output *o)
{
    o->ok = o->ok && nl_writer_put(o->writer, o->record) == NL_OK;
}

static connection_cause largest_cause(const connection_slice *slice)
{
    int largest = 0;
    for (int c = 1; c < CAUSE_COUNT; c++)
        largest = slice->cause_ns[c] > slice->cause_ns[largest] ? c : largest;
    return (connection_cause)largest;
}

static void write_result(records_output *o, const connection_result *r, int64_t slice_ns)
{
    const connection_slice *slices = (const connection_slice *)(const void *)r->slices->data;
    guint first = 0; /* first of the slices with the same cause */
    for (guint i = 0; i < r->slices->len; i++) {
        int64_t end_ns = (slices[i].index + 1) * slice_ns;
        begin_record(o, r, "TcpRate", end_ns);
        nl_record_add_double(o->record, "TCP.RATE", slices[i].bytes * 1e9 / (double)slice_ns);
        end_record(o);
        if (slices[i].retransmitted > 0) {
            begin_record(o, r, "TcpRetransmit", end_ns);
            nl_record_add_double(o->record, "TCP.RETRANS", slices[i].retransmitted);
            end_record(o);
        }
        connection_cause cause = largest_cause(&slices[i]);
        if (i + 1 < r->slices->len && slices[i + 1].index == slices[i].index + 1 &&
            largest_cause(&slices[i + 1]) == cause)
            continue;
        begin_record(o, r, limit_events[cause], end_ns);
        nl_record_add_double(o->record, "DUR",
                             (double)(slices[i].index + 1 - slices[first].index) * (double)slice_ns / 1e9);
        end_record(o);
        first = i + 1;
    }
}

bool connection_records_write(const GPtrArray *results, int64_t slice_ns, const char *file)
{
    nl_writer_options options = {.truncate = true, .buffer_size = 64 << 10, .format = nl_format_of_name(file)};
    if (options.format == NL_FORMAT_UNKNOWN)
        options.format = NL_FORMAT_ULM;
    records_output o = {nl_writer_open(file, &options), nl_record_new(), true};
    if (o.writer != NULL)
        for (guint i = 0; i < results->len; i++)
            write_result(&o, g_ptr_array_index(results, i), slice_ns);
    nl_record_free(o.record);
    return o.writer != NULL && nl_writer_close(o.writer) == NL_OK && o.ok;
}
