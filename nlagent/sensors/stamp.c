#include "config.h"

#include "sensors/stamp.h"

#include <netlogger.h>

#include <string.h>
#include <sys/timex.h>

/* Offsets in packets. The zeros of a probe extend to the end of the smallest packet. */
enum { SEQUENCE = 0, TIME = 4, ERROR = 12, SESSION = 14, ZEROS = 16 };
enum { RECEIVED = 16, PROBE_SEQUENCE = 24, PROBE_TTL = 40 };

/* Seconds from 1900, the start of NTP's era 0, to 1970. */
#define NTP_TO_UNIX_S INT64_C(2208988800)

/* The error estimate (RFC 4656): two flags, 6 bits for the exponent, 8 bits for the multiplier. */
enum { SYNCHRONIZED = 0x8000, PTP = 0x4000, SCALE_SHIFT = 8, SCALE_MASK = 63, MULTIPLIER_MAX = 255 };

/* Maximum known error. Larger errors count as unknown. */
#define ERROR_MAX_NS (3 * NL_NS_PER_SECOND)
enum { SCALE_MAX = 26 /* for errors of less than 4 s, so that no calculation overflows */ };

static void put_number(unsigned char *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(value >> 8 * (size - 1 - i));
}

static uint64_t get_number(const unsigned char *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | from[i];
    return value;
}

static void put_time(unsigned char *to, int64_t ns)
{
    int64_t seconds = ns / NL_NS_PER_SECOND, rest = ns % NL_NS_PER_SECOND;
    if (rest < 0) {
        rest += NL_NS_PER_SECOND;
        seconds--;
    }
    put_number(to, (uint64_t)(seconds + NTP_TO_UNIX_S) & UINT32_MAX, 4);
    /* round, so that get_time returns the same time */
    put_number(to + 4, (((uint64_t)rest << 32) + NL_NS_PER_SECOND / 2) / NL_NS_PER_SECOND, 4);
}

/* Reads a time. A time with the highest bit set is in NTP's era 0, which ends in 2036. Other times are in era 1. */
static int64_t get_time(const unsigned char *from)
{
    uint64_t seconds = get_number(from, 4), fraction = get_number(from + 4, 4);
    if (seconds < UINT64_C(1) << 31)
        seconds += UINT64_C(1) << 32;
    uint64_t ns = (fraction * NL_NS_PER_SECOND + (UINT64_C(1) << 31)) >> 32;
    return ((int64_t)seconds - NTP_TO_UNIX_S) * NL_NS_PER_SECOND + (int64_t)ns;
}

/* Writes an error, rounded up, because a multiplier of 0 is invalid. */
static void put_error(unsigned char *to, int64_t error_ns)
{
    bool known = error_ns >= 0 && error_ns < ERROR_MAX_NS;
    uint64_t scale = 0, units = known ? ((uint64_t)error_ns << 32) / NL_NS_PER_SECOND + 1 : 1; /* in units of 2^-32 s */
    for (; units > MULTIPLIER_MAX; scale++)
        units = (units + 1) / 2;
    put_number(to, (known ? SYNCHRONIZED : 0) | scale << SCALE_SHIFT | units, 2);
}

static int64_t get_error(const unsigned char *from)
{
    uint64_t value = get_number(from, 2), scale = value >> SCALE_SHIFT & SCALE_MASK, units = value & MULTIPLIER_MAX;
    if ((value & SYNCHRONIZED) == 0 || units == 0 || scale > SCALE_MAX)
        return STAMP_ERROR_UNKNOWN;
    int64_t error_ns = (int64_t)(((units << scale) * NL_NS_PER_SECOND >> 32) + 1);
    return error_ns < ERROR_MAX_NS ? error_ns : STAMP_ERROR_UNKNOWN;
}

void stamp_write_probe(const stamp_probe *probe, unsigned char packet[STAMP_SIZE])
{
    memset(packet, 0, STAMP_SIZE);
    put_number(packet + SEQUENCE, probe->sequence, 4);
    put_time(packet + TIME, probe->sent_ns);
    put_error(packet + ERROR, probe->error_ns);
    put_number(packet + SESSION, probe->session, 2);
}

/* Reads the members of a probe from a probe or, at another offset, from its reply. */
static void get_probe(const unsigned char *from, stamp_probe *probe)
{
    probe->sequence = (uint32_t)get_number(from, 4);
    probe->sent_ns = get_time(from + TIME);
}

bool stamp_read_probe(const void *packet, size_t size, stamp_probe *probe)
{
    static const unsigned char zeros[STAMP_SIZE - ZEROS];
    const unsigned char *from = packet;
    if (size < STAMP_SIZE || memcmp(from + ZEROS, zeros, sizeof zeros) != 0)
        return false;
    get_probe(from, probe);
    probe->session = (uint16_t)get_number(from + SESSION, 2);
    probe->error_ns = get_error(from + ERROR);
    return true;
}

void stamp_write_reply(const void *probe, const stamp_reply *reply, unsigned char packet[STAMP_SIZE])
{
    const unsigned char *from = probe;
    memset(packet, 0, STAMP_SIZE);
    put_number(packet + SEQUENCE, reply->sequence, 4);
    put_error(packet + ERROR, reply->error_ns);
    memcpy(packet + SESSION, from + SESSION, 2);
    put_time(packet + RECEIVED, reply->received_ns);
    memcpy(packet + PROBE_SEQUENCE, from, SESSION);
    packet[PROBE_TTL] = (unsigned char)reply->ttl;
    put_time(packet + TIME, reply->replied_ns);
}

bool stamp_read_reply(const void *packet, size_t size, stamp_reply *reply)
{
    const unsigned char *from = packet;
    if (size < STAMP_SIZE || (get_number(from + ERROR, 2) & PTP) != 0)
        return false;
    reply->sequence = (uint32_t)get_number(from + SEQUENCE, 4);
    reply->replied_ns = get_time(from + TIME);
    reply->error_ns = get_error(from + ERROR);
    reply->received_ns = get_time(from + RECEIVED);
    get_probe(from + PROBE_SEQUENCE, &reply->probe);
    reply->probe.session = (uint16_t)get_number(from + SESSION, 2);
    reply->probe.error_ns = STAMP_ERROR_UNKNOWN;
    reply->ttl = from[PROBE_TTL];
    return true;
}

int64_t stamp_clock_error_ns(void)
{
    struct timex t = {0};
    int state = ntp_adjtime(&t);
    bool synchronized = state >= 0 && state != TIME_ERROR && (t.status & STA_UNSYNC) == 0;
    return synchronized ? t.maxerror * INT64_C(1000) : STAMP_ERROR_UNKNOWN;
}
