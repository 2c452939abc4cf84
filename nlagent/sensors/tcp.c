/*
 * TCP segments of this network namespace since the last look; when some had to be sent again, that is an event of its
 * own. RFC 4022 (tcpInSegs, tcpOutSegs, tcpRetransSegs), as in /proc/net/snmp.
 */
#include "config.h"

#include "sensors/sensor.h"

#include <math.h>

typedef struct tcp_state {
    nl_buffer text;
    uint64_t in, out, again;
} tcp_state;

static sample_result sample(void *state, double seconds, nl_record *record, const char **extra)
{
    tcp_state *s = state;
    uint64_t in, out, again;
    if (!proc_read("/proc/self/net/snmp", &s->text))
        return SAMPLE_FAILED;
    if (!proc_find_column(s->text.data, "Tcp:", "InSegs", &in) ||
        !proc_find_column(s->text.data, "Tcp:", "OutSegs", &out) ||
        !proc_find_column(s->text.data, "Tcp:", "RetransSegs", &again)) {
        proc_set_error("/proc/self/net/snmp", "it has no counts of TCP segments");
        return SAMPLE_FAILED;
    }
    uint64_t more_in = proc_rise(s->in, in), more_out = proc_rise(s->out, out), more_again = proc_rise(s->again, again);
    s->in = in;
    s->out = out;
    s->again = again;
    if (seconds <= 0)
        return SAMPLE_NOTHING;
    nl_record_add_uint(record, "TCP.RETRANS", more_again);
    nl_record_add_double(record, "TCP.IN", round((double)more_in / seconds * 10) / 10);
    nl_record_add_double(record, "TCP.OUT", round((double)more_out / seconds * 10) / 10);
    if (more_again > 0)
        *extra = "TcpRetransmit";
    return SAMPLE_DONE;
}

const sensor_kind tcp_sensor = {
    "tcp", "TcpSegments",
    "TCP.RETRANS: segments sent again since the last record (also as an event TcpRetransmit "
    "when there were any); TCP.IN TCP.OUT: segments a second",
    sample, sizeof(tcp_state)};
