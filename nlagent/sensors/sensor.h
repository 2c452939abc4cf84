/*
 * Host sensors. A sensor measures the kernel or a server at an interval; each measurement gives some records.
 *
 * A sensor is one file of this directory and one row in the table of kinds.c. Its measure function reads values, mostly
 * from /proc, and logs a record for each object of its kind: record_begin, add fields, record_end. Kernel counters only
 * rise. A sensor logs their increase since its last measurement, mostly as rates; its first measurement has no such
 * fields. The table of fields is the only description of the records; --list, doc/sensors.md and directory entries come
 * from it.
 *
 * A specification names a sensor with its arguments: "cpu", "ping?host=dpss1.lbl.gov" (spec.h). One thread.
 */
#ifndef NLAGENT_SENSOR_H
#define NLAGENT_SENSOR_H

#include "sensors/spec.h"

#include <netlogger.h>

/* One measurement by one sensor. */
typedef struct measurement measurement;
struct measurement {
    void *state;       /* state_size bytes of the sensor, zero at first */
    double seconds;    /* since the last measurement; 0 in the first measurement */
    nl_record *record; /* between record_begin and record_end */
    void (*emit)(measurement *m);
    void *user; /* emit's */
};

/* Begin a record, to which the sensor then adds fields, and log it. */
nl_record *record_begin(measurement *m, const char *event);
void record_end(measurement *m);

/* The description of one field of one event. */
typedef struct sensor_field {
    const char *event;
    const char *name;
    const char *unit; /* "" for names */
    const char *meaning;
} sensor_field;

typedef struct sensor_kind {
    const char *name;
    const char *what;           /* one line */
    const char *arguments;      /* names, each between blanks; "" without arguments */
    const char *arguments_help; /* NULL without arguments */
    bool is_default;            /* runs if no sensor is named: it needs no arguments and costs little */
    const sensor_field *fields; /* the last field has no event */
    /* Called once, before the first measurement. Returns false and sets the error on failure. NULL: not needed. */
    bool (*open)(void *state, const sensor_spec *spec);
    /* Returns false and sets the error if this host lacks the measured objects. */
    bool (*measure)(measurement *m);
    size_t state_size;
} sensor_kind;

/* All sensors, up to NULL. */
extern const sensor_kind *const sensor_kinds[];

/* Returns the sensor with a name, or NULL. */
const sensor_kind *sensor_kind_find(const char *name);

extern const sensor_kind clock_sensor, collectd_sensor, connections_sensor, cpu_sensor, disk_sensor, filesystem_sensor,
    interrupts_sensor, load_sensor, memory_sensor, network_sensor, ping_sensor, pressure_sensor, processes_sensor,
    prometheus_sensor, server_sensor, swap_sensor, tcp_sensor, vm_sensor;

/* ---- fields ---- */

/* Adds a rise as a rate per second, rounded to tenths. */
void add_rate(nl_record *record, const char *name, uint64_t rise, double seconds);

/* Adds a number rounded to a number of decimals. */
void add_rounded(nl_record *record, const char *name, double value, int decimals);

void add_text(nl_record *record, const char *name, const char *value);

/* ---- reading /proc ---- */

/* Reads a whole file into buffer, which ends with NUL. Returns false and sets the error on failure. */
bool proc_read(const char *path, nl_buffer *buffer);

/* Finds the number after "name" and blanks at the start of a line. Returns false if no line has the name. */
bool proc_find(const char *text, const char *name, uint64_t *value);

/*
 * Finds a number in a table such as /proc/net/snmp: a line of names, "Tcp: A B C", is followed by a line of values,
 * "Tcp: 1 2 3". Returns false if the table lacks the column.
 */
bool proc_find_column(const char *text, const char *table, const char *name, uint64_t *value);

/* Reads numbers separated by blanks, at most max, up to the end of the line. Returns their count; moves *at past them.
 */
size_t proc_numbers(const char **at, uint64_t *values, size_t max);

/* Returns the start of the next line, or NULL after the last. */
const char *proc_next_line(const char *at);

/* Returns the increase of a counter, or its present value if it was reset. */
uint64_t proc_rise(uint64_t before, uint64_t now);

/* ---- counters of objects that appear and disappear, such as devices and processes ---- */

enum { COUNTERS_MAX = 20, COUNTERS_KEY_SIZE = 48 };

typedef struct counters_row counters_row;

/* Zero at first; never freed. */
typedef struct counters {
    counters_row *rows;
    size_t count, capacity;
    size_t next; /* the expected row: objects usually have the same order in each measurement */
    unsigned round;
} counters;

/* Begins a measurement: removes the objects that the last measurement did not have. */
void counters_begin(counters *c);

/* Sets rise to the increase of an object's counters since the last measurement. Returns false for a new object. */
bool counters_rise(counters *c, const char *key, const uint64_t *now, size_t count, uint64_t *rise);

#endif
