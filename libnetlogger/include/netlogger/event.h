/*
 * Typed events at the lowest cost.
 *
 *   NL_EVENT(log, NL_USAGE, "WriteData", "SEND.SZ", size, "FILE", name);
 *
 * NL_EVENT copies the values and a reading of the time-stamp counter into a ring (a circular buffer) of the calling
 * thread. NL_EVENT does not format values, take locks, allocate memory or make system calls, with these exceptions. The
 * first event of a thread in a log creates the ring, and the first event at a place in the program registers the place.
 * An event may wait for space in a full ring (nl_policy). The first event after a pause may wake the writer thread
 * (nl_set_idle). If more than 496 logs are open, each event in the additional logs takes a lock. The first 16 open logs
 * have the lowest cost. The log's writer thread makes records from the values and sends the records. nl_write uses the
 * same rings.
 *
 * Arguments: the log (with NULL, nothing happens), a level (a constant), the event name (a string literal), and up to
 * 16 pairs of a field name (a string literal) and a value. Each value is evaluated once, and only if the log's
 * threshold includes the level and the event is not switched off by name. Types of values:
 *
 *   bool, char, every integer type, float, double    the value; a char is a number, a long double becomes a double
 *   char *, const char *                             the text up to its NUL; NULL becomes "(null)"
 *   nl_string                                        the bytes, including NULs: NL_BYTES(data, size)
 *
 * The compiler rejects:
 *
 *   - a value of another type, nullptr, and a C++ object (cast an object to a type in the table)
 *   - a field name without a value, and more than 16 pairs
 *   - a missing or empty event name
 *   - a level that is invalid or not a constant
 *
 * In C++, NULL without a cast is the number 0. A bit-field needs a cast. A string of more than NL_VALUE_SIZE_MAX bytes
 * is truncated. NL_EVENT works in C11 with GNU extensions and in C++11.
 *
 * NL_EVENT is safe in signal handlers. If the signal interrupts an event of the same thread, the handler's event is
 * counted as lost. A signal handler must not call siglongjmp to leave an interrupted event.
 */
#ifndef NETLOGGER_EVENT_H
#define NETLOGGER_EVENT_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#include <string.h>

#define NL_FIELDS_MAX 16
#define NL_VALUE_SIZE_MAX 16384

/*
 * Logs an event: NL_EVENT(log, level, "NAME", "FIELD", value, "FIELD", value ...). The comment at the top of this file
 * describes the arguments. NL_EVENT is a statement and returns no result. Thread-safe, and safe in signal handlers.
 */
#define NL_EVENT(log, level, ...)                                                                                      \
    NL_PRIVATE_JOIN(NL_PRIVATE_EVENT_, NL_PRIVATE_FORM(__VA_ARGS__))                                                   \
    (NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)), log, level, __VA_ARGS__, 0)

/* A value for NL_EVENT: size bytes at data. */
#define NL_BYTES(data, size) nl_bytes((data), (size))

/* Returns the value for NL_BYTES. */
static inline nl_string nl_bytes(const void *data, size_t size)
{
    nl_string bytes = {NL_PRIVATE_CAST(const char *, data), size};
    return bytes;
}

NL_BEGIN_DECLS

/*
 * Events whose names are known only at run time, for bindings to other languages:
 *
 *   const nl_string names[] = {{"SEND.SZ", 7}, {"FILE", 4}};
 *   nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"WriteData", 9}, names, 2); // once
 *   const nl_field values[] = {{.type = NL_TYPE_INT, .int_value = size}, {.type = NL_TYPE_STRING, .string = file}};
 *   nl_event_write(log, kind, values);                                                        // for every event
 *
 * A kind is the constant part of an event: its level, its name, and the names of its fields (any number). A kind
 * belongs to no log: several threads, and children of fork(), can use a kind with any logs at the same time.
 */
typedef struct nl_event_kind nl_event_kind;

/*
 * Creates a kind. Copies event and the field_count names of fields, and replaces each byte that a field name must not
 * contain (record.h) with '_'. Returns NULL with the reason in nl_error_message() on failure. When no thread uses the
 * kind any more, the caller frees it with nl_event_kind_free, which accepts NULL. The process registers the first 4096
 * different kinds and never frees them. Events of other kinds take several times as long. The same is true for events
 * of kinds with more than NL_FIELDS_MAX fields or with a name of 4096 bytes or more, and for events with a new
 * combination of value types after 16 combinations of the kind. Thread-safe. Not safe in signal handlers.
 */
NL_API nl_event_kind *nl_event_kind_new(nl_level level, nl_string event, const nl_string *names, size_t field_count);
NL_API void nl_event_kind_free(nl_event_kind *kind);

/*
 * Writes one event of a kind. values has one field for each field name of the kind, in the same order; only the type
 * and the value of each field are used. The types may differ from call to call. The data of a string may be NULL if its
 * size is 0. The policies and limits of nl_write apply. The cost is about that of NL_EVENT. errno is unchanged.
 * Thread-safe. Safe in signal handlers if the kind is registered and an event with the same types has been written
 * before. Returns:
 *
 *   NL_OK         the event is logged
 *   NL_OFF        log is NULL, the threshold excludes the level, or the event is switched off by name
 *   NL_FAILED     an argument is invalid, or the event is lost
 *   NL_MALFORMED  the event is logged, but a value of more than 131072 bytes was truncated
 */
NL_API nl_status nl_event_write(nl_log *log, nl_event_kind *kind, const nl_field *values);

/*
 * Returns true if log is NULL, or if the calling thread's ring certainly has space for the thread's next event, so that
 * logging this event does not wait. If the function returns false, a binding releases its lock (Python's GIL) before it
 * logs the event. size is the size of the event in the ring: 16 bytes, plus 8 bytes for each number, plus 4 bytes and
 * the length for each string. Thread-safe.
 *
 * The function also returns false if the space is unknown:
 *
 *   - at the thread's first event in the log
 *   - once after every N bytes that the thread writes, where N is the size of its ring
 *   - in all logs except the first 16 open logs
 */
NL_API bool nl_event_has_space(const nl_log *log, size_t size);

/* The cost of one kind of event. Later versions may append members. */
typedef struct nl_event_cost {
    const char *event;
    nl_level level;
    const char *const *names; /* names of the fields, an array of field_count strings */
    unsigned field_count;
    unsigned printed_fields; /* for nl_write: number of fields that the calling thread formats, such as %x and %.3f */
    double ns;               /* time in the calling thread, in nanoseconds */
    size_t bytes;            /* size of the event in the ring, in bytes */
} nl_event_cost;

/*
 * Measures the cost of each event that the program has reached since it opened its first log. Each NL_EVENT in the
 * source is one event, and so is each combination of name, level and format that the program passes to nl_write. A
 * separate thread writes each event several thousand times into a private ring, with strings of 23 bytes. No log
 * receives these events. ns is the minimum of several rounds. ns does not include delays by full rings and cold caches,
 * or the time in which nl_write reads and prints its arguments. The measurement takes about 0.1 ms per event. report is
 * called with `user` in the calling thread; cost is valid until report returns. The strings in cost are valid while the
 * code that logs the event is loaded. Returns NL_OK, or NL_FAILED with the reason in nl_error_message(). Thread-safe,
 * unless another thread unloads a shared library that logs. Not safe in signal handlers.
 */
NL_API nl_status nl_event_costs(void (*report)(void *user, const nl_event_cost *cost), void *user);

NL_END_DECLS

/* ---- Implementation. Programs must not use the names below. ---- */

#include <netlogger/event_private.h>

#endif
