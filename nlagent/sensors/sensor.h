/*
 * A host sensor: something of the kernel's that is looked at again and again, each look a record.
 *
 * A sensor is one file here and one line in nlsensor.c's table. Its sample function reads what it needs from /proc,
 * adds fields to a record and returns. Counters of the kernel only rise; a sensor logs how much they rose since its
 * last look, as a rate, so its first look logs nothing.
 */
#ifndef NLAGENT_SENSOR_H
#define NLAGENT_SENSOR_H

#include <netlogger.h>

typedef struct sensor sensor;

/* What a look gave. */
typedef enum sample_result {
    SAMPLE_DONE,    /* the record is to be logged */
    SAMPLE_NOTHING, /* there is nothing to log this time */
    SAMPLE_FAILED,  /* this host has not what it takes: proc_error() says what */
} sample_result;

typedef struct sensor_kind {
    const char *name;
    const char *event;  /* NL.EVNT of its records */
    const char *fields; /* what they hold, with units, for --list */
    /*
     * Looks. seconds is how long ago the last look was, 0 for the first. state is sensor_state bytes of the sensor's
     * own, zero at first. extra may be given a second event for something that happened (a name), NULL otherwise.
     */
    sample_result (*sample)(void *state, double seconds, nl_record *record, const char **extra);
    size_t state_size;
} sensor_kind;

extern const sensor_kind cpu_sensor, memory_sensor, tcp_sensor, disk_sensor;

/* ---- reading /proc ---- */

/* Reads a file of /proc whole into buffer, NUL-terminated. False when that fails. */
bool proc_read(const char *path, nl_buffer *buffer);

/* Why the latest proc_read failed, or what was missing. */
const char *proc_error(void);
void proc_set_error(const char *path, const char *what);

/* The number behind "name" and blanks at the start of a line; false when there is no such line. */
bool proc_find(const char *text, const char *name, uint64_t *value);

/*
 * The number in a table like /proc/net/snmp, where a line "Tcp: A B C" of names is followed by "Tcp: 1 2 3" of values.
 */
bool proc_find_column(const char *text, const char *table, const char *name, uint64_t *value);

/* How much a counter rose; when it fell (it was reset, or wrapped) what it shows now. */
uint64_t proc_rise(uint64_t before, uint64_t now);

#endif
