/*
 * What this host knows of its clock's quality: the kernel (ntp_adjtime(3)) always, chronyd where it runs. The events
 * and fields are said here once, for the library's own records (log/clock_watch.h) and for the sensor of clocks:
 *
 *   ClockKernel    CLOCK.SYNCHRONIZED CLOCK.OFFSET CLOCK.ERROR CLOCK.ERROR.ESTIMATED CLOCK.FREQUENCY
 *   ClockTracking  CLOCK.SOURCE CLOCK.STRATUM CLOCK.LEAP CLOCK.SYNCHRONIZED CLOCK.OFFSET CLOCK.OFFSET.LAST
 *                  CLOCK.OFFSET.RMS CLOCK.FREQUENCY CLOCK.SKEW CLOCK.ERROR
 *
 * Offsets and errors are microseconds, frequencies parts in a million; an offset is what is to be added to the clock:
 * positive, it is slow. doc/clocks.md explains them to users. Nothing here allocates but in the record, or keeps state.
 */
#ifndef NETLOGGER_TIMEKEEPING_QUALITY_H
#define NETLOGGER_TIMEKEEPING_QUALITY_H

#include <netlogger.h>

#define NL_CLOCK_KERNEL "ClockKernel"
#define NL_CLOCK_TRACKING "ClockTracking"
#define NL_CLOCK_OFFSET "ClockOffset"
#define NL_CLOCK_STEP "ClockStep"

/* Adds the fields of ClockKernel. False when the kernel does not tell. *synchronized says what CLOCK.SYNCHRONIZED does.
 */
bool nl_quality_add_kernel(nl_record *record, bool *synchronized);

/*
 * Asks chronyd on this host (its protocol of version 6, command "tracking"): over UDP port 323 of the loopback
 * interface, or, where that is shut and the process may, over chronyd's own socket, /run/chrony/chronyd.sock. A
 * descriptor that is readable when there is an answer, not blocking, with nothing waited for; -1 when there is no
 * chronyd. number tells answers apart.
 */
int nl_chrony_ask(uint32_t number, bool own_socket);

/* What became of a question. */
typedef enum nl_chrony_answer {
    NL_CHRONY_NOT_YET,
    NL_CHRONY_NONE, /* nobody is there, or it is not understood */
    NL_CHRONY_ANSWERED,
} nl_chrony_answer;

/* Reads the answer from fd, which stays open, and adds the fields of ClockTracking. */
nl_chrony_answer nl_chrony_take(int fd, uint32_t number, nl_record *record, bool *synchronized);

/* Closes the descriptor of a question. */
void nl_chrony_close(int fd);

/* A number of microseconds and the like, rounded to three decimals. */
void nl_quality_add(nl_record *record, const char *name, double value);

#endif
