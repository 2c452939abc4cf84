/*
 * The interface of host sensors. A sensor measures the kernel or a server at regular intervals. Each measurement
 * produces some records.
 *
 * A sensor consists of a file in this directory and a row in the table in kinds.c. A sensor's measure function reads
 * values, mostly from /proc. The function logs one record for each object that the sensor measures, such as a disk: it
 * calls record_begin, adds fields, and calls record_end. For kernel counters, which only increase, a sensor logs the
 * increase since its last measurement, mostly as a rate. The first measurement has no such fields. The sensor's table
 * of fields is the only description of its records, from which --list, doc/sensors.md and the entries in directories
 * come.
 *
 * A specification names a sensor and its arguments, such as "cpu" or "ping?host=dpss1.lbl.gov" (spec.h). Not
 * thread-safe.
 */
#ifndef NLAGENT_SENSOR_H
#define NLAGENT_SENSOR_H

#include "sensors/spec.h"

#include <netlogger.h>

/* One measurement by one sensor. */
typedef struct measurement measurement;
struct measurement {
    void *state;       /* memory of the sensor, state_size bytes, initially all zero */
    double seconds;    /* time since the last measurement; 0 in the first measurement */
    nl_record *record; /* the current record, between record_begin and record_end */
    void (*emit)(measurement *m);
    void *user; /* argument for emit */
};

/* record_begin begins and returns a record, to which the sensor adds fields. record_end logs the record. */
nl_record *record_begin(measurement *m, const char *event);
void record_end(measurement *m);

/* The description of one field of one event. */
typedef struct sensor_field {
    const char *event;
    const char *name;
    const char *unit; /* "" for a name */
    const char *meaning;
} sensor_field;

typedef struct sensor_kind {
    const char *name;
    const char *what;      /* description in one line */
    const char *arguments; /* argument names, with a blank before and after each; "" if the sensor has no arguments */
    const char *arguments_help; /* NULL if there are no arguments */
    const char *required;       /* the required argument, such as "host=NAME"; NULL: all arguments are optional */
    bool is_default; /* the sensor runs if the user names no sensors, because it needs no arguments and costs little */
    const sensor_field *fields; /* ends with a field that has no event */
    /* Called once, before the first measurement; may be NULL. Returns false and sets the error on failure. */
    bool (*open)(void *state, const sensor_spec *spec);
    /* Measures once. Returns false and sets the error if this host lacks the objects to measure. */
    bool (*measure)(measurement *m);
    /* Called once, after the last measurement, to log what the sensor has already noticed; may be NULL. */
    void (*finish)(measurement *m);
    size_t state_size;
} sensor_kind;

/* All sensors, NULL-terminated. */
extern const sensor_kind *const sensor_kinds[];

/* Returns the sensor with this name, or NULL. */
const sensor_kind *sensor_kind_find(const char *name);

extern const sensor_kind clock_sensor, collectd_sensor, connections_sensor, cpu_sensor, disk_sensor, filesystem_sensor,
    interrupts_sensor, load_sensor, memory_sensor, network_sensor, path_sensor, ping_sensor, pressure_sensor,
    processes_sensor, prometheus_sensor, server_sensor, swap_sensor, tcp_sensor, vm_sensor;

/* ---- fields ---- */

/* Adds an increase as a rate per second, rounded to one decimal. */
void add_rate(nl_record *record, const char *name, uint64_t rise, double seconds);

/* Adds a number, rounded to `decimals` (0 to 6) decimals. */
void add_rounded(nl_record *record, const char *name, double value, int decimals);

void add_text(nl_record *record, const char *name, const char *value);

/* ---- reading /proc ---- */

/* Reads a whole file into `buffer`, and adds a NUL. Returns false and sets the error on failure. */
bool proc_read(const char *path, nl_buffer *buffer);

/* Finds the number after `name` and blanks at the start of a line. Returns false if no line begins with this name. */
bool proc_find(const char *text, const char *name, uint64_t *value);

/*
 * Finds a number in a table such as /proc/net/snmp. In such a table, a line of values ("Tcp: 1 2 3") follows a line of
 * names ("Tcp: A B C"). Returns false if the table lacks the column.
 */
bool proc_find_column(const char *text, const char *table, const char *name, uint64_t *value);

/* Reads at most `max` numbers, separated by blanks, from the line at *at. Sets *at to the end of the numbers. Returns
 * the count of numbers. */
size_t proc_numbers(const char **at, uint64_t *values, size_t max);

/* Returns the start of the next line, or NULL after the last line. */
const char *proc_next_line(const char *at);

/* Returns the increase of a counter, or its current value if it was reset. */
uint64_t proc_rise(uint64_t before, uint64_t now);

/* ---- counters of objects that appear and disappear, such as devices and processes ---- */

enum { COUNTERS_MAX = 20, COUNTERS_KEY_SIZE = 48 };

typedef struct counters_row counters_row;

/* The counters of a sensor's objects. Initially all zero. Never freed. */
typedef struct counters {
    counters_row *rows;
    size_t count, capacity;
    size_t next; /* the expected row, because objects usually have the same order in each measurement */
    unsigned round;
} counters;

/* Begins a measurement. Removes the objects that the last measurement did not contain. */
void counters_begin(counters *c);

/*
 * Sets `rise` to the increases of an object's counters since the last measurement. Returns false if the last
 * measurement did not have the object.
 */
bool counters_rise(counters *c, const char *key, const uint64_t *now, size_t count, uint64_t *rise);

#endif
