/*
 * The quality of this host's clock, from the kernel (ntp_adjtime(3)) and from chronyd. The library's own records
 * (log/clock_watch.h) and the clock sensor use these events and fields:
 *
 *   ClockKernel    CLOCK.SYNCHRONIZED CLOCK.MACHINE CLOCK.OFFSET CLOCK.ERROR CLOCK.ERROR.ESTIMATED CLOCK.FREQUENCY
 *   ClockTracking  CLOCK.SOURCE CLOCK.STRATUM CLOCK.LEAP CLOCK.SYNCHRONIZED CLOCK.OFFSET CLOCK.OFFSET.LAST
 *                  CLOCK.OFFSET.RMS CLOCK.FREQUENCY CLOCK.SKEW CLOCK.ERROR
 *
 * Offsets and errors are in microseconds, frequencies in parts per million. A positive offset means that the clock is
 * slow. Hosts with the same CLOCK.MACHINE share one clock. CLOCK.ERROR is absent if nothing synchronizes the clock. See
 * doc/clocks.md. The module has no state and allocates only in records.
 */
#ifndef NETLOGGER_BASE_CLOCK_QUALITY_H
#define NETLOGGER_BASE_CLOCK_QUALITY_H

#include <netlogger.h>

#define NL_CLOCK_KERNEL "ClockKernel"
#define NL_CLOCK_TRACKING "ClockTracking"
#define NL_CLOCK_OFFSET "ClockOffset"
#define NL_CLOCK_STEP "ClockStep"
#define NL_CLOCK_MACHINE "CLOCK.MACHINE"

/*
 * Adds the fields of ClockKernel, and sets *synchronized to CLOCK.SYNCHRONIZED. Returns false if the kernel rejects the
 * call.
 */
bool nl_quality_add_kernel(nl_record *record, bool *synchronized);

/*
 * Sends the "tracking" command of chrony's protocol, version 6, to the local chronyd, over UDP port 323 or, if
 * own_socket is true, over /run/chrony/chronyd.sock. number identifies the reply. Returns a non-blocking descriptor
 * that becomes readable when the reply arrives, or -1 if there is no chronyd.
 */
int nl_chrony_ask(uint32_t number, bool own_socket);

typedef enum nl_chrony_answer {
    NL_CHRONY_NOT_YET,
    NL_CHRONY_NONE, /* chronyd is not running, or uses an unknown protocol version */
    NL_CHRONY_ANSWERED,
} nl_chrony_answer;

/* Reads the reply from fd without waiting. If the reply has arrived, adds the fields of ClockTracking. */
nl_chrony_answer nl_chrony_take(int fd, uint32_t number, nl_record *record, bool *synchronized);

/* Closes the descriptor that nl_chrony_ask returned. */
void nl_chrony_close(int fd);

/* Adds a field with a number, rounded to three decimals. */
void nl_quality_add(nl_record *record, const char *name, double value);

#endif
