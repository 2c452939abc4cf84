/*
 * Markers: places in a program that log nothing until a probe is attached.
 *
 *   NL_MARKER(disk_read, "BLOCK.ID", id, "SIZE", size);
 *
 * A marker without a probe costs one load and one branch that is not taken. At run time, the program can attach any
 * number of probes to markers by name or pattern, with the functions below. nl_control and the activation file (log.h)
 * can also attach probes. A probe logs the marker, counts it, measures the time from one marker to another, or calls a
 * function. Probes can be detached while other threads pass the marker.
 *
 * The name of a marker is an identifier. Up to 8 pairs follow the name. Each pair consists of a field name (a string
 * literal) and a value of a type that NL_EVENT accepts. Each value is evaluated once, and only while a probe is
 * attached. Several places may have the same name: a probe is attached to all of them. Markers work in C11 with GNU
 * extensions and in C++11, in inline functions and templates, in the program and in each library that it loads.
 *
 * Each marker is also a USDT probe of the provider "netlogger" (x86-64 and AArch64) for bpftrace, perf and gdb:
 *
 *   bpftrace -e 'usdt:./prog:netlogger:disk_read { @[arg0] = count(); }'
 *
 * The arguments are the values in order, 8 bytes each: integers, floating-point numbers truncated to integers, and the
 * addresses of strings. Building the program requires no additional package.
 *
 * While a thread runs a probe, the markers that it passes have no effect. Markers are safe in signal handlers, unless a
 * probe calls a function that is not safe there.
 *
 * All functions below are thread-safe. None of these functions is safe in signal handlers.
 */
#ifndef NETLOGGER_MARKER_H
#define NETLOGGER_MARKER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#define NL_MARKER_FIELDS_MAX 8

/*
 * Defines a marker at this place: NL_MARKER(NAME, "FIELD", value, "FIELD", value ...). NL_MARKER is a statement. The
 * comment at the top of this file describes the arguments.
 */
#define NL_MARKER(...)                                                                                                 \
    NL_PRIVATE_JOIN(NL_PRIVATE_MARKER_, NL_PRIVATE_FORM(__VA_ARGS__))                                                  \
    (NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)), NL_PRIVATE_PAIRS(__VA_ARGS__), __VA_ARGS__, 0)

NL_BEGIN_DECLS

/* A number that identifies an attached probe: unique in the process and never 0. */
typedef unsigned nl_probe;

/*
 * The function that a probe calls in the thread that passes the marker. The name and the fields are valid until the
 * function returns. The function may attach and detach probes.
 */
typedef void (*nl_probe_function)(void *user, const char *marker, const nl_field *fields, size_t field_count);

typedef enum nl_probe_kind {
    NL_PROBE_LOG,   /* logs each pass; the name of the event is the marker's name */
    NL_PROBE_COUNT, /* counts passes */
    NL_PROBE_TIME,  /* measures the time between two passes in the same thread */
    NL_PROBE_CALL,  /* calls a function at each pass */
} nl_probe_kind;

typedef struct nl_probe_options {
    nl_probe_kind kind;
    const char *pattern;        /* matches the names of markers (fnmatch(3)) */
    const char *to;             /* for NL_PROBE_TIME: a measurement begins at a marker that matches `pattern`, and ends
                                   at the next marker that matches `to`. A marker that matches both patterns ends one
                                   measurement and begins the next */
    nl_log *log;                /* for NL_PROBE_LOG; its threshold applies, and nl_close detaches the probe */
    nl_level level;             /* for NL_PROBE_LOG: level of the events */
    nl_probe_function function; /* for NL_PROBE_CALL */
    void *user;                 /* for NL_PROBE_CALL; must be valid until nl_marker_detach has returned */
} nl_probe_options;

/*
 * Attaches a probe to all markers whose name matches the pattern, including those of libraries that the program loads
 * later. It is not an error if no marker matches. The patterns are copied. Returns the probe, which the caller passes
 * to nl_marker_detach. Returns 0 with the reason in nl_error_message() if an option is invalid, if memory runs out, or
 * if 4096 probes that measure times exist.
 */
NL_API nl_probe nl_marker_attach(const nl_probe_options *options);

/*
 * Detaches a probe, and waits until no thread runs the probe. A call from a probe's function does not wait, so other
 * threads may run the probe a moment longer. Returns NL_OK, or NL_END if no such probe exists.
 */
NL_API nl_status nl_marker_detach(nl_probe probe);

/* A marker at one place in the program. */
typedef struct nl_marker_info {
    const char *name;
    const char *place;  /* file and line, such as "disk.c:123" */
    const char *fields; /* names of the fields, separated by spaces */
    size_t probes;      /* number of attached probes */
} nl_marker_info;

/* A probe and its results so far. */
typedef struct nl_probe_info {
    nl_probe probe;
    nl_probe_kind kind;
    const char *pattern;
    const char *to;   /* second pattern of NL_PROBE_TIME, otherwise NULL */
    size_t markers;   /* number of places where the probe is attached */
    uint64_t count;   /* number of passes or, for NL_PROBE_TIME, of measurements */
    int64_t min_ns;   /* minimum; this and the next members are 0 if count is 0 or the kind is not NL_PROBE_TIME */
    int64_t mean_ns;  /* mean time */
    int64_t max_ns;   /* maximum time */
    int64_t p50_ns;   /* median; like the following percentiles, with an error of at most 1/16 */
    int64_t p90_ns;   /* 90th percentile */
    int64_t p99_ns;   /* 99th percentile */
    int64_t p99_9_ns; /* 99.9th percentile */
} nl_probe_info;

/*
 * Call function with `user` and each marker (also those not yet reached), or each probe, in no particular order. The
 * pointers are valid until function returns. function may call all functions of this file. Return NL_OK. If memory runs
 * out, return NL_FAILED without calling function.
 */
NL_API nl_status nl_marker_list(void (*function)(void *user, const nl_marker_info *marker), void *user);
NL_API nl_status nl_probe_list(void (*function)(void *user, const nl_probe_info *probe), void *user);

NL_END_DECLS

/* ---- Implementation. Programs must not use the names below. ---- */

#include <netlogger/marker_private.h>

#endif
