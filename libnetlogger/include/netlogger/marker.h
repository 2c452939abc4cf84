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
 * probe from nl_marker_attach_call calls a function that is not safe there.
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
 * The function that a probe from nl_marker_attach_call calls, in the thread that passes the marker. The name and the
 * fields are valid until the function returns. The function may attach and detach probes.
 */
typedef void (*nl_probe_function)(void *user, const char *marker, const nl_field *fields, size_t field_count);

/*
 * Attach a probe to all markers whose name matches pattern (fnmatch(3)), including those of libraries that the program
 * loads later. It is not an error if no marker matches. The pattern is copied. The functions return the probe, which
 * the caller passes to nl_marker_detach. On failure (an argument is invalid or memory runs out), the functions return
 * 0, and nl_error_message() has the reason.
 *
 * nl_marker_attach_log logs each pass to log, which must not be NULL. The name of the event is the marker's name. The
 * threshold of the log applies. nl_close detaches the probe.
 */
NL_API nl_probe nl_marker_attach_log(const char *pattern, nl_log *log, nl_level level);

/* Counts the passes of matching markers. nl_probe_read returns the count. */
NL_API nl_probe nl_marker_attach_count(const char *pattern);

/*
 * Measures the time between two passes in the same thread. A measurement begins at a marker whose name matches the
 * pattern `from`, and ends at the next marker whose name matches the pattern `to`. A marker that matches both patterns
 * ends one measurement and begins the next. Returns 0 if 4096 such probes already exist.
 */
NL_API nl_probe nl_marker_attach_time(const char *from, const char *to);

/* Calls function with `user`, which must be valid until nl_marker_detach has returned. */
NL_API nl_probe nl_marker_attach_call(const char *pattern, nl_probe_function function, void *user);

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

typedef enum nl_probe_kind {
    NL_PROBE_LOG,
    NL_PROBE_COUNT,
    NL_PROBE_TIME,
    NL_PROBE_CALL,
} nl_probe_kind;

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

/* Fills *info with the results of a probe; pattern and to are NULL. Returns false if no such probe exists. */
NL_API bool nl_probe_read(nl_probe probe, nl_probe_info *info);

NL_END_DECLS

/* ---- Implementation. Programs must not use the names below. ---- */

#include <netlogger/marker_private.h>

#endif
