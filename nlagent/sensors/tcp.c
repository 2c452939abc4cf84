/*
 * TCP of this network namespace since the last look; when segments had to be sent again, that is an event of its own.
 * RFC 4022, as in /proc/net/snmp, and what Linux counts besides, in /proc/net/netstat.
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <string.h>

enum {
    IN_SEGMENTS,
    OUT_SEGMENTS,
    AGAIN,
    RESETS_OUT,
    RESETS_IN,
    FAILED,
    ACTIVE,
    PASSIVE,
    IN_ERRORS,
    ESTABLISHED,
    COLUMNS
};
enum { OVERFLOWS, LISTEN_DROPS, TIMEOUTS, EXTENDED };

typedef struct tcp_state {
    nl_buffer text;
    uint64_t values[COLUMNS], extended[EXTENDED];
} tcp_state;

static void turn(uint64_t *before, const uint64_t *now, uint64_t *rise, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rise[i] = proc_rise(before[i], now[i]);
    memcpy(before, now, count * sizeof *now);
}

static void log_segments(sensor_look *look, const uint64_t *rise, const uint64_t *extended, uint64_t established)
{
    nl_record *record = look_begin(look, "TcpSegments");
    nl_record_add_uint(record, "TCP.RETRANS", rise[AGAIN]);
    add_rate(record, "TCP.IN", rise[IN_SEGMENTS], look->seconds);
    add_rate(record, "TCP.OUT", rise[OUT_SEGMENTS], look->seconds);
    nl_record_add_uint(record, "TCP.IN.ERRORS", rise[IN_ERRORS]);
    nl_record_add_uint(record, "TCP.RESETS.OUT", rise[RESETS_OUT]);
    nl_record_add_uint(record, "TCP.RESETS.IN", rise[RESETS_IN]);
    nl_record_add_uint(record, "TCP.OPENED", rise[ACTIVE]);
    nl_record_add_uint(record, "TCP.ACCEPTED", rise[PASSIVE]);
    nl_record_add_uint(record, "TCP.FAILED", rise[FAILED]);
    nl_record_add_uint(record, "TCP.ESTABLISHED", established);
    if (extended != NULL) {
        nl_record_add_uint(record, "TCP.LISTEN.OVERFLOWS", extended[OVERFLOWS]);
        nl_record_add_uint(record, "TCP.LISTEN.DROPS", extended[LISTEN_DROPS]);
        nl_record_add_uint(record, "TCP.TIMEOUTS", extended[TIMEOUTS]);
    }
    look_end(look);
}

static void log_retransmits(sensor_look *look, uint64_t again)
{
    nl_record *record = look_begin(look, "TcpRetransmit");
    nl_record_add_uint(record, "TCP.RETRANS", again);
    look_end(look);
}

static bool tcp_look(sensor_look *look)
{
    static const char *const names[COLUMNS] = {"InSegs",       "OutSegs",     "RetransSegs",  "OutRsts", "EstabResets",
                                               "AttemptFails", "ActiveOpens", "PassiveOpens", "InErrs",  "CurrEstab"};
    static const char *const more[EXTENDED] = {"ListenOverflows", "ListenDrops", "TCPTimeouts"};
    tcp_state *s = look->state;
    uint64_t now[COLUMNS], rise[COLUMNS], extended[EXTENDED], more_rise[EXTENDED];
    if (!proc_read("/proc/self/net/snmp", &s->text))
        return false;
    if (proc_find_columns(s->text.data, "Tcp:", names, COLUMNS, now) <= AGAIN)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/self/net/snmp: it has no counts of TCP segments");
    bool has_more = proc_read("/proc/self/net/netstat", &s->text) &&
                    proc_find_columns(s->text.data, "TcpExt:", more, EXTENDED, extended) == EXTENDED;
    uint64_t established = now[ESTABLISHED];
    turn(s->values, now, rise, COLUMNS);
    if (has_more)
        turn(s->extended, extended, more_rise, EXTENDED);
    if (look->seconds <= 0)
        return true;
    log_segments(look, rise, has_more ? more_rise : NULL, established);
    if (rise[AGAIN] > 0)
        log_retransmits(look, rise[AGAIN]);
    return true;
}

static const sensor_field fields[] = {
    {"TcpSegments", "TCP.RETRANS", "segments", "sent again since the record before"},
    {"TcpSegments", "TCP.IN", "segments/s", "received"},
    {"TcpSegments", "TCP.OUT", "segments/s", "sent, those sent again not counted"},
    {"TcpSegments", "TCP.IN.ERRORS", "segments", "received wrong since the record before"},
    {"TcpSegments", "TCP.RESETS.OUT", "segments", "with RST sent since the record before"},
    {"TcpSegments", "TCP.RESETS.IN", "connections", "that were reset since the record before"},
    {"TcpSegments", "TCP.OPENED", "connections", "begun from here since the record before"},
    {"TcpSegments", "TCP.ACCEPTED", "connections", "begun from elsewhere since the record before"},
    {"TcpSegments", "TCP.FAILED", "connections", "that did not come about since the record before"},
    {"TcpSegments", "TCP.ESTABLISHED", "connections", "there are, now"},
    {"TcpSegments", "TCP.LISTEN.OVERFLOWS", "connections", "that found an accept queue full since the record before"},
    {"TcpSegments", "TCP.LISTEN.DROPS", "connections", "that a listener dropped since the record before"},
    {"TcpSegments", "TCP.TIMEOUTS", "timeouts", "of retransmission since the record before"},
    {"TcpRetransmit", "TCP.RETRANS", "segments", "sent again since the record before, when there were any"},
    {0},
};

const sensor_kind tcp_sensor = {.name = "tcp",
                                .what = "TCP in all: segments, retransmits, resets, listen drops",
                                .arguments = "",
                                .is_default = true,
                                .fields = fields,
                                .look = tcp_look,
                                .state_size = sizeof(tcp_state)};
