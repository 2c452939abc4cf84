/*
 * Markers: places in a program that lie dormant until somebody wants to know.
 *
 *   NL_MARKER(disk_read, "BLOCK.ID", id, "SIZE", size);
 *
 * costs one load and one branch that is not taken. At run time any number of probes attach to it by its name or by a
 * pattern, from the program itself (the functions below) or from outside (nl_control, the activation file; log.h): to
 * log it, to count it, to take the time from one marker to another, to call a function. They detach again safely while
 * other threads pass through.
 *
 * The name is an identifier; up to 8 pairs of a field's name (a string literal) and its value follow, of the types that
 * NL_EVENT takes. Values are evaluated, each once, only while somebody is attached. One name may stand in several
 * places: a probe attaches to all of them. Works in C11 with GNU extensions and in C++11, in inline functions and
 * templates, in the program and in every library that it loads.
 *
 * Each marker is also a USDT probe of provider "netlogger" (x86-64 and AArch64), so that bpftrace, perf and gdb see it:
 *
 *   bpftrace -e 'usdt:./prog:netlogger:disk_read { @[arg0] = count(); }'
 *
 * Its arguments are the values in their order, 8 bytes each: whole numbers as they are, a floating-point number cut to
 * a whole one, a string as the address of its bytes. Nothing has to be installed for that where the program is built.
 *
 * A marker passed within a probe (by the function that a probe calls, or in a signal handler that comes in the middle
 * of one) is not seen; otherwise markers may stand in signal handlers, but then let no probe of nl_marker_attach_call
 * attach whose function must not run there.
 *
 * All functions are thread-safe, and none is for signal handlers.
 */
#ifndef NETLOGGER_MARKER_H
#define NETLOGGER_MARKER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#define NL_MARKER_FIELDS_MAX 8

/*
 * Marks this place: NL_MARKER(NAME, "FIELD", value, "FIELD", value ...), with what may stand there on top of this page.
 * A statement. Thread-safe; in signal handlers as said there.
 */
#define NL_MARKER(...)                                                                                                 \
    NL_PRIVATE_JOIN(NL_PRIVATE_MARKER_, NL_PRIVATE_FORM(__VA_ARGS__))                                                  \
    (NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)), NL_PRIVATE_PAIRS(__VA_ARGS__), __VA_ARGS__, 0)

NL_BEGIN_DECLS

/* A probe that is attached; never 0, and no two in a process are alike. */
typedef unsigned nl_probe;

/*
 * What a probe of nl_marker_attach_call calls, in the thread that passes the marker: with the marker's name and fields,
 * which last until it returns. It may attach and detach probes.
 */
typedef void (*nl_probe_function)(void *user, const char *marker, const nl_field *fields, size_t field_count);

/*
 * Attach a probe to every marker whose name matches pattern (fnmatch(3), so a name is a pattern, too): to those that
 * the program has now, and to those of libraries that it loads later. That none matches is no failure. The pattern is
 * copied. Result: the probe, to be given to nl_marker_detach; 0 when the pattern is empty, with nl_error_message().
 *
 * nl_marker_attach_log logs each pass in log, which must not be NULL: the event is the marker's name, the fields are
 * its own. The threshold of the log applies. nl_close detaches what logs there.
 */
NL_API nl_probe nl_marker_attach_log(const char *pattern, nl_log *log, nl_level level);

/* Counts the passes. */
NL_API nl_probe nl_marker_attach_count(const char *pattern);

/*
 * Takes the time from each pass of a marker of pattern from to the same thread's next pass of one of pattern to. A
 * marker that both match ends one time and begins the next. 0 also when 4096 of these are attached already.
 */
NL_API nl_probe nl_marker_attach_time(const char *from, const char *to);

/* Calls function with user, which must last until nl_marker_detach has returned. */
NL_API nl_probe nl_marker_attach_call(const char *pattern, nl_probe_function function, void *user);

/*
 * Detaches a probe. When it returns no thread is in that probe any more, nor comes into it again: it waits for those
 * that are. Called by a probe's function it does not wait: other threads may be in that probe for a moment longer.
 * NL_OK, or NL_END when there is no such probe (any more).
 */
NL_API nl_status nl_marker_detach(nl_probe probe);

/* A place in the program where a marker stands. */
typedef struct nl_marker_info {
    const char *name;
    const char *place;  /* "disk.c:123" */
    const char *fields; /* their names, a blank between each two */
    size_t probes;      /* how many are attached */
} nl_marker_info;

typedef enum nl_probe_kind {
    NL_PROBE_LOG,
    NL_PROBE_COUNT,
    NL_PROBE_TIME,
    NL_PROBE_CALL,
} nl_probe_kind;

/* A probe, and what it has found so far. */
typedef struct nl_probe_info {
    nl_probe probe;
    nl_probe_kind kind;
    const char *pattern;
    const char *to;   /* the second pattern of NL_PROBE_TIME; NULL for others */
    size_t markers;   /* places that it is attached to now */
    uint64_t count;   /* passes; of NL_PROBE_TIME the times taken */
    int64_t min_ns;   /* this and what follows: of NL_PROBE_TIME, 0 while count is 0 */
    int64_t mean_ns;  /* */
    int64_t max_ns;   /* */
    int64_t p50_ns;   /* percentiles: right within a sixteenth */
    int64_t p90_ns;   /* */
    int64_t p99_ns;   /* */
    int64_t p99_9_ns; /* */
} nl_probe_info;

/*
 * Call function with each place of a marker, reached or not, and with each probe, in no order that means anything. What
 * is pointed to lasts until function returns; it may call anything here. NL_FAILED, and function is not called, when
 * there is no memory.
 */
NL_API nl_status nl_marker_list(void (*function)(void *user, const nl_marker_info *marker), void *user);
NL_API nl_status nl_probe_list(void (*function)(void *user, const nl_probe_info *probe), void *user);

/* Fills *info with what that probe has found; false when there is no such probe. pattern and to are NULL in it. */
NL_API bool nl_probe_read(nl_probe probe, nl_probe_info *info);

NL_END_DECLS

/* ---- From here on: how it is done. Nothing below is for programs to name; it is compiled into them. ---- */

#include <netlogger/marker_private.h>

#endif
