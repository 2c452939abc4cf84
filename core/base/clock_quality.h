/*
 * The quality of this host's clock, from the kernel (ntp_adjtime(3)) and from chronyd. The library's own records
 * (log/clock_watch.h) and the clock sensor use these events and fields:
 *
 *   ClockKernel    CLOCK.SYNCHRONIZED CLOCK.MACHINE CLOCK.OFFSET CLOCK.ERROR CLOCK.ERROR.ESTIMATED CLOCK.FREQUENCY
 *   ClockTracking  CLOCK.SOURCE CLOCK.STRATUM CLOCK.LEAP CLOCK.SYNCHRONIZED CLOCK.OFFSET CLOCK.OFFSET.LAST
 *                  CLOCK.OFFSET.RMS CLOCK.FREQUENCY CLOCK.SKEW CLOCK.ERROR
 *
 * Offsets and errors are in microseconds, frequencies in parts per million. A positive offset means that the clock is
 * slow. Hosts with the same CLOCK.MACHINE share one clock. ClockKernel has CLOCK.ERROR and CLOCK.ERROR.ESTIMATED only
 * if the clock is synchronized. See doc/clocks.md. The module has no state, and allocates memory only for fields of
 * records.
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
 * Adds the fields of ClockKernel to record, and sets *synchronized to the value of CLOCK.SYNCHRONIZED. Returns false,
 * and changes nothing, if ntp_adjtime fails.
 */
bool nl_quality_add_kernel(nl_record *record, bool *synchronized);

/*
 * Sends the command "tracking" of version 6 of chrony's protocol to the local chronyd. Uses UDP port 323, or, if
 * own_socket is true, /run/chrony/chronyd.sock. The caller chooses number, which chronyd repeats in its reply. Returns
 * a non-blocking descriptor that becomes readable when the reply arrives, or -1 if the command cannot be sent.
 * nl_chrony_close closes the descriptor.
 */
int nl_chrony_ask(uint32_t number, bool own_socket);

typedef enum nl_chrony_answer {
    NL_CHRONY_NOT_YET,  /* no valid reply has arrived */
    NL_CHRONY_NONE,     /* receiving failed, usually because chronyd is not running */
    NL_CHRONY_ANSWERED, /* the fields were added */
} nl_chrony_answer;

/*
 * Reads from fd, without waiting, the reply to the command with this number. If the reply has arrived, adds the fields
 * of ClockTracking to record and sets *synchronized to the value of CLOCK.SYNCHRONIZED.
 */
nl_chrony_answer nl_chrony_take(int fd, uint32_t number, nl_record *record, bool *synchronized);

/* Closes a descriptor that nl_chrony_ask returned, and removes its socket from chronyd's directory. */
void nl_chrony_close(int fd);

/* Adds a field with a value that is rounded to three decimals. */
void nl_quality_add(nl_record *record, const char *name, double value);

#endif
