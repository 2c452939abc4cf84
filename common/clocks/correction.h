/*
 * Corrects the times of many hosts to one time base. The information comes from the log itself: measured clock offsets
 * (ClockOffset), steps of clocks (ClockStep), hosts that share a machine (ClockKernel), and messages. A message is
 * always sent before it is received.
 *
 *   c = correction_new(&options);
 *   for each record: correction_learn(c, record);     in any order
 *   correction_solve(c);
 *   for each record: correction_apply(c, record, out);
 *
 * A message is two records of different hosts with the same IDs. The options or the event names identify the sending
 * and the receiving record. For example, Ping.Send and Ping.Receive differ only in the words Send and Receive. The
 * clock of the reference host is the time base. If memory runs out, the program ends. Only one thread may use a
 * correction, except where noted.
 */
#ifndef NETLOGGER_TIMEKEEPING_CORRECTION_H
#define NETLOGGER_TIMEKEEPING_CORRECTION_H

#include <netlogger.h>

typedef struct correction correction;

/* The events of a message. */
typedef struct correction_message {
    const char *sent, *received;
} correction_message;

/* The texts must outlive the correction. */
typedef struct correction_options {
    const char *reference;  /* name of a host; NULL selects the collector with the most measurements or, if the log has
                               no measurements, the host with the most messages */
    const char *const *ids; /* fields that identify messages; NULL selects SEQ and the fields whose names end in ID */
    size_t id_count;
    const correction_message *messages; /* NULL: the event names identify messages */
    size_t message_count;
} correction_options;

/* Creates a correction, which the caller frees. Copies the options, but not their texts and lists. */
correction *correction_new(const correction_options *options);

/* Learns from a record. The caller may free the record afterwards. */
void correction_learn(correction *c, const nl_record *record);

/* Computes the corrections. Call it once, after all records. */
void correction_solve(correction *c);

/*
 * Returns a host's corrected time, or time_ns if the clock's correction is unknown. Any number of threads may call
 * this function at the same time.
 */
int64_t correction_time(const correction *c, nl_string host, int64_t time_ns);

/*
 * Copies a record to `out` with its time corrected. Adds the original time as DATE.ORIGINAL, unless the record already
 * has that field. Returns false, with `out` unchanged, if the time needs no correction.
 */
bool correction_apply(const correction *c, const nl_record *record, nl_record *out);

/* Is like correction_apply, but sets the time to time_ns. */
bool correction_set_time(const nl_record *record, int64_t time_ns, nl_record *out);

/* The result for a host. */
typedef struct correction_host {
    const char *name; /* owned by the correction */
    bool is_reference;
    bool is_known;         /* the correction is known */
    double offset_ns;      /* value to add to the host's times, at the middle of the period that its records cover */
    double min_ns, max_ns; /* range of the offset over all records of the host */
    double drift;          /* drift against the reference; 1e-4 means 100 ppm fast */
    double error_ns;       /* maximum error; infinite if the offset has only one bound */
    /* contradictions: number of messages whose times contradict the measurements. */
    uint64_t measurements, messages, contradictions;
    unsigned pieces, steps;
} correction_host;

size_t correction_host_count(const correction *c);
correction_host correction_get_host(const correction *c, size_t i);

/* Returns the reference host's name, or NULL. */
const char *correction_reference(const correction *c);

void correction_free(correction *c);

#endif
