/*
 * A host sensor: something of the kernel's that is looked at again and again, each look some records.
 *
 * A sensor is one file here and one line in kinds.c's table. Its look function reads what it needs (from /proc mostly),
 * begins a record of one of the events that its fields name, adds them and ends it, as often as there are things of its
 * kind. Counters of the kernel only rise; a sensor logs how much they rose since its last look, most as rates, so its
 * first look logs nothing of them. What it logs is said once, in its table of fields, from which --list, doc/sensors.md
 * and the directory's entries come.
 *
 * A sensor is named with what it is to look at: "cpu", "ping?host=dpss1.lbl.gov" (spec.h).
 */
#ifndef NLAGENT_SENSOR_H
#define NLAGENT_SENSOR_H

#include "sensors/spec.h"

#include <netlogger.h>

/* One look of one sensor. */
typedef struct sensor_look sensor_look;
struct sensor_look {
    void *state;       /* state_size bytes of the sensor's own, zero at first */
    double seconds;    /* since the last look; 0 for the first */
    nl_record *record; /* between look_begin and look_end */
    void (*emit)(sensor_look *look);
    void *user; /* emit's */
};

/* Begins a record of that event, to which fields are added; and has it logged. */
nl_record *look_begin(sensor_look *look, const char *event);
void look_end(sensor_look *look);

/* What one field of one event is. A field with more than one event is said once for each. */
typedef struct sensor_field {
    const char *event;
    const char *name;
    const char *unit; /* "" for names */
    const char *meaning;
} sensor_field;

typedef struct sensor_kind {
    const char *name;
    const char *what;           /* in a line */
    const char *arguments;      /* the names of what it may be told, each between blanks; "" for none */
    const char *arguments_help; /* what they mean; NULL for none */
    bool is_default;            /* runs when no sensor is named: it needs to be told nothing, and costs little */
    const sensor_field *fields; /* up to one without an event */
    /* Once, before the first look; NULL when nothing is to be done. Returns false on failure. */
    bool (*open)(void *state, const sensor_spec *spec);
    /* Looks. Returns false and sets the error when this host does not have what the sensor measures. */
    bool (*look)(sensor_look *look);
    size_t state_size;
} sensor_kind;

/* All there are, up to NULL. */
extern const sensor_kind *const sensor_kinds[];

/* NULL when nothing of that name exists. */
const sensor_kind *sensor_kind_find(const char *name);

extern const sensor_kind clock_sensor, collectd_sensor, connections_sensor, cpu_sensor, disk_sensor, filesystem_sensor,
    interrupts_sensor, load_sensor, memory_sensor, network_sensor, ping_sensor, pressure_sensor, processes_sensor,
    prometheus_sensor, server_sensor, swap_sensor, tcp_sensor, vm_sensor;

/* ---- fields ---- */

/* How much a counter rose, as a rate in units a second, rounded to tenths. */
void add_rate(nl_record *record, const char *name, uint64_t rise, double seconds);

/* A number rounded to so many decimals. */
void add_rounded(nl_record *record, const char *name, double value, int decimals);

void add_text(nl_record *record, const char *name, const char *value);

/* ---- reading /proc ---- */

/* Reads a file of /proc whole into buffer, NUL-terminated. False when that fails. */
bool proc_read(const char *path, nl_buffer *buffer);

/* The number behind "name" and blanks at the start of a line; false when there is no such line. */
bool proc_find(const char *text, const char *name, uint64_t *value);

/* The same for several in the order of the lines, which is faster: values of those that are not there are 0. Returns
 * how many there are. */
size_t proc_find_all(const char *text, const char *const *names, size_t count, uint64_t *values);

/*
 * The numbers in a table like /proc/net/snmp, where a line "Tcp: A B C" of names is followed by "Tcp: 1 2 3" of values;
 * those that are not there are 0. Returns how many there are.
 */
size_t proc_find_columns(const char *text, const char *table, const char *const *names, size_t count, uint64_t *values);

/* Numbers with blanks between, to the line's end at most. Returns how many, at most most; moves *at behind them. */
size_t proc_numbers(const char **at, uint64_t *values, size_t most);

/* The start of the next line; NULL behind the last. */
const char *proc_next_line(const char *at);

/* How much a counter rose; when it fell (it was reset, or wrapped) what it shows now. */
uint64_t proc_rise(uint64_t before, uint64_t now);

/* ---- counters of things that come and go: devices, processes ---- */

enum { COUNTERS_MAX = 20, COUNTERS_KEY = 48 };

typedef struct counters_row counters_row;

/* Zeroes at first. Lasts as long as the process. */
typedef struct counters {
    counters_row *rows;
    size_t count, capacity;
    size_t at; /* where the next is expected: things mostly come in the same order */
    unsigned turn;
} counters;

/* Begins a look: what the look before did not mention is forgotten. */
void counters_begin(counters *c);

/* By how much count counters of the thing of that name rose since the last look. False when it was not there then. */
bool counters_rise(counters *c, const char *key, const uint64_t *now, size_t count, uint64_t *rise);

#endif
