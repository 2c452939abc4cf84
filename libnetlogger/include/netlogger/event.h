/*
 * Typed events, at next to no cost.
 *
 *   NL_EVENT(log, NL_USAGE, "WriteData", "SEND.SZ", size, "FILE", name);
 *
 * The caller's thread copies the raw values and a reading of the time-stamp counter into a ring of its own and goes on:
 * it formats nothing, takes no lock, makes no system call and allocates nothing, but at a thread's first event in a
 * log, when the ring is made, and at the first event of a place in the program, which is registered then. (The first 16
 * logs that are open at a time cost the least; from the 497th on each event takes a lock.) A writer
 * thread of the log makes records of it and sends them. nl_write goes through the same ring.
 *
 * Arguments: the log (NULL is allowed and does nothing), a level (a constant), the event's name (a string literal),
 * then up to 16 pairs of a field's name (a string literal) and its value. Each value is evaluated once, and only when
 * the event is on. Types of values:
 *
 *   bool, char, every integer type, float, double    themselves; a char is a number; a long double becomes a double
 *   char *, const char *                             the text up to its NUL; NULL is the text "(null)"
 *   nl_string                                        those bytes, any of them, NUL too: NL_BYTES(data, size)
 *
 * Any other type, a name without a value, more than 16 pairs, no or an empty event's name, or a level that is none or
 * no constant is a compile error. So are nullptr and, in C++, an object of a class, though it converts to one of these
 * types: cast it. NULL by itself is no text: in C++ it is logged as the number 0. Works in C11 with GNU extensions and
 * in C++11. A string longer than NL_VALUE_SIZE_MAX bytes is cut there. A bit-field wants a cast.
 *
 * In a signal handler it is safe: when the signal came in the middle of an event of the same thread, the handler's
 * event is refused and counted as lost; otherwise it is logged. A handler must not jump out (siglongjmp) of an event.
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
 * Logs an event: NL_EVENT(log, level, "NAME", "FIELD", value, "FIELD", value ...), with what may stand there on top of
 * this page. A statement; no value tells what became of the event. Thread-safe; safe in signal handlers as said there.
 */
#define NL_EVENT(log, level, ...)                                                                                      \
    NL_PRIVATE_JOIN(NL_PRIVATE_EVENT_, NL_PRIVATE_FORM(__VA_ARGS__))                                                   \
    (NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)), log, level, __VA_ARGS__, 0)

/* An nl_string of size bytes at data, as a value of NL_EVENT. */
#define NL_BYTES(data, size) nl_bytes((data), (size))

/* The same as a function. */
static inline nl_string nl_bytes(const void *data, size_t size)
{
    nl_string bytes = {NL_PRIVATE_CAST(const char *, data), size};
    return bytes;
}

NL_BEGIN_DECLS

/*
 * Events whose names are known at run time only, as programs in other languages have them:
 *
 *   const nl_string names[] = {{"SEND.SZ", 7}, {"FILE", 4}};
 *   nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"WriteData", 9}, names, 2); // once
 *   const nl_field values[] = {{.type = NL_TYPE_INT, .int_value = size}, {.type = NL_TYPE_STRING, .string = file}};
 *   nl_event_write(log, kind, values);                                                        // for every event
 *
 * A kind is an event's level and name and the names of its fields, any number of them: what a call says again and
 * again. It is of no log and may be used with all of them, by any number of threads at once, and in a child of fork().
 */
typedef struct nl_event_kind nl_event_kind;

/*
 * Makes a kind; event and the field_count names are copied, a byte that no name may have (record.h) becomes '_'. To be
 * freed by nl_event_kind_free (NULL is allowed there), when nobody uses it any more. The process remembers the first
 * 4096 that differ, and takes the memory of these but once, however often they are made and freed; events of others
 * are logged too, at some times the price, as are those with more than NL_FIELDS_MAX fields. Thread-safe; not for
 * signal handlers.
 */
NL_API nl_event_kind *nl_event_kind_new(nl_level level, nl_string event, const nl_string *names, size_t field_count);
NL_API void nl_event_kind_free(nl_event_kind *kind);

/*
 * Writes one event of a kind. values holds a field for each of the kind's names, in their order, of which type and
 * value are read, not the name; the type of a field may be another with every call. A string's data may be NULL when
 * its size is 0. Results, policies and limits are nl_write's: NL_OK, NL_OFF, NL_FAILED when the event is lost,
 * NL_MALFORMED when a value of more than 131072 bytes was cut. Takes about as long as NL_EVENT does. errno is left
 * alone. Thread-safe; in signal handlers as safe as NL_EVENT once an event with the same types was written, for a kind
 * that the process remembers.
 */
NL_API nl_status nl_event_write(nl_log *log, nl_event_kind *kind, const nl_field *values);

/*
 * Whether an event of the calling thread certainly is written without a wait, whatever the policy: for callers that
 * would give up a lock of their own before a wait. size is what the event takes in the ring: 16 bytes, and for each
 * field 8 or, when it is a string, 4 and its bytes. False too when it is not known before the event is written, as once
 * in each ring's length, and at the thread's first. Thread-safe.
 */
NL_API bool nl_event_has_room(const nl_log *log, size_t size);

/* What logging one kind of event costs. Members may be appended in later versions. */
typedef struct nl_event_cost {
    const char *event;
    nl_level level;
    const char *const *names; /* of its fields, field_count of them */
    unsigned field_count;
    unsigned printed_fields; /* nl_write: values that are printed first, as by %x or %.3f */
    double ns;               /* nanoseconds of the caller's time */
    size_t bytes;            /* in the ring */
} nl_event_cost;

/*
 * Measures what events cost here and now, and reports it: for every place with an NL_EVENT, and for every event, level
 * and format of nl_write, that has been reached since the first log was opened, in that order. Each event is logged
 * some thousand times by a thread of its own into a ring that nobody reads, with typical values (strings of 23 bytes);
 * nothing goes into any log. ns is the least of several rounds: what a full ring or a cold cache adds is not in it, nor
 * is what nl_write does with the arguments before they are values (some nanoseconds each, and printing). Takes about a
 * tenth of a millisecond an event. report is called in the calling thread; cost lasts until it returns, what it points
 * to as long as the program's text. NL_OK, or NL_FAILED with the reason. Thread-safe, while no shared library that logs
 * is unloaded (dlclose); not for signal handlers.
 */
NL_API nl_status nl_event_costs(void (*report)(void *user, const nl_event_cost *cost), void *user);

NL_END_DECLS

/* ---- From here on: how it is done. Nothing below is for programs to name; it is compiled into them. ---- */

#include <netlogger/event_private.h>

#endif
