/*
 * Spans: intervals of a request, and the context that connects the spans of several threads, processes and hosts.
 *
 *   NL_SPAN(log, NL_USAGE, "Query", "SQL", text) {
 *       NL_EVENT(log, NL_USAGE, "RowsSent", "COUNT", n);     // belongs to the span
 *   }
 *
 * logs the records
 *
 *   NL.EVNT=Query.start PARENT.ID=53995c3f42cd8ad8 TRACE.ID=4bf92f...4736 SPAN.ID=00f067aa0ba902b7 SQL="SELECT ..."
 *   NL.EVNT=RowsSent COUNT=12 TRACE.ID=4bf92f...4736 SPAN.ID=00f067aa0ba902b7
 *   NL.EVNT=Query.end PARENT.ID=53995c3f42cd8ad8 TRACE.ID=4bf92f...4736 SPAN.ID=00f067aa0ba902b7 STATUS=0
 *
 * A trace is the set of all spans of one request. The root span of a trace has no PARENT.ID. STATUS is 0 for success.
 *
 * Contexts. A context names a trace and a span in it (nl_context). Every thread has a current context, which is empty
 * at first. NL_SPAN makes its span the current context for the duration of the block. While the current context is that
 * of a sampled span, all events of the thread, in all logs, have the TRACE.ID and SPAN.ID of that span. Contexts are
 * values: pass a copy to another thread, a callback or a queue, and call nl_context_attach there. nl_span_begin and
 * nl_span_end do not change the current context, so that spans can overlap, and end in another thread or after their
 * parent.
 *
 * A program passes a context to another process as a traceparent (W3C Trace Context, levels 1 and 2), in a request
 * header or in the environment variable TRACEPARENT.
 *
 * Sampling. The originator of a trace decides whether it is sampled and passes the decision in the flags. A span whose
 * parent is not sampled logs nothing. Pass its traceparent to other programs nevertheless, so that they do not sample
 * the trace either. Traces that begin in this library are sampled.
 *
 * Cost. A span takes no lock, makes no system call and allocates no memory. The exceptions are the first span of a
 * thread, the first span at a place in the program, and the other exceptions that event.h lists for events. A span that
 * is not logged costs about as much as a switched-off event.
 *
 * Defined behavior:
 *
 *   log NULL, level off, name switched off    nothing is logged; children of the span get the span's parent
 *   the ring is full                          the event is lost and counted, like any event; the span's IDs stay valid
 *   a second end, or the end of a span        the call does nothing
 *     that is not logged
 *   a span ends after its parent, or in       the end is logged; readers know the order from the times
 *     another thread
 *   a span never ends, for example because    the log has no end of the span; nothing else happens
 *     its thread exits
 *   fork                                      both processes have the span, and each may log its end. New IDs differ
 *   memory runs out                           as for events: the event is lost and counted
 *
 * Signal handlers may log events while their thread is in a span. Do not call the functions and macros below in signal
 * handlers: they could generate the same ID as the interrupted code. No function or macro below changes errno. All
 * functions and macros are thread-safe, but two threads must not use one nl_span at the same time.
 */
#ifndef NETLOGGER_SPAN_H
#define NETLOGGER_SPAN_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

/* Flags of a context. */
enum {
    NL_CONTEXT_SAMPLED = 1,
    NL_CONTEXT_RANDOM = 2, /* the last 7 bytes of the trace ID are random (W3C Trace Context level 2) */
};

/* A trace and a span in it. If all members are zero, the context is empty and names no trace. */
typedef struct nl_context {
    unsigned char trace_id[16];
    unsigned char span_id[8];
    unsigned char flags; /* NL_CONTEXT_SAMPLED and NL_CONTEXT_RANDOM */
    unsigned char reserved[7];
} nl_context;

/* A span. Programs may read context and set status; other members are private. */
typedef struct nl_span {
    nl_context context;         /* the span's context; if the span is not logged, its parent's context */
    unsigned char parent_id[8]; /* all zeros for a root span */
    nl_log *log;                /* NULL if the span is not logged, or has ended */
    const void *begun; /* if level is 0, the place in the program where the span began; otherwise the span's name */
    int level;         /* 0 for a span from NL_SPAN or nl_span_begin, whose place has the level */
    int status;        /* STATUS that the end event gets; 0 means success */
} nl_span;

/*
 * Logs NAME.start and makes its block the scope of the span:
 *
 *   NL_SPAN(log, level, "NAME", "FIELD", value, ...) { ... }
 *
 * The arguments are those of NL_EVENT. The parent is the thread's current context; if that context is empty, the span
 * begins a trace. Leaving the block, even by break, return, goto or a C++ exception, logs NAME.end and restores the
 * previous context. longjmp out of the block does neither.
 */
#define NL_SPAN(log, level, ...) NL_PRIVATE_SCOPE(log, level, __VA_ARGS__)

/*
 * Sets the STATUS with which the thread's innermost NL_SPAN ends. If that span is not logged, the call has no effect on
 * other spans.
 */
static inline void nl_span_set_status(int status);

/*
 * Logs NAME.start and returns the nl_span, which the program keeps until the end:
 *
 *   nl_span span = nl_span_begin(log, level, "NAME", parent, "FIELD", value, ...);
 *
 * parent is a const nl_context *. NULL means the current context. NL_NO_PARENT begins a trace. level is a constant and
 * the name a literal, as for NL_EVENT, with up to 16 fields.
 */
#define nl_span_begin(log, level, name, ...)                                                                           \
    __extension__({                                                                                                    \
        nl_span nl_span_;                                                                                              \
        NL_PRIVATE_JOIN(NL_PRIVATE_SPAN_, NL_PRIVATE_FORM(__VA_ARGS__))                                                \
        (NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)), nl_span_, nl_private_span_skip, log, level, \
         name, __VA_ARGS__, 0);                                                                                        \
        nl_span_;                                                                                                      \
    })

/*
 * Logs NAME.end with span->status and more fields: nl_span_end(&span, "FIELD", value, ...). Any thread may call this
 * function. Does nothing if the span is NULL, not logged or already ended. nl_span_end is a statement and returns no
 * result. For spans from nl_span_begin_fields, the library registers at most 4,096 pairs of an nl_span_end and a name.
 * For further pairs, nl_span_end omits the fields; nl_span_end_fields does not omit them.
 */
#define nl_span_end(...)                                                                                               \
    NL_PRIVATE_JOIN(NL_PRIVATE_SPAN_END_, NL_PRIVATE_FORM(__VA_ARGS__))                                                \
    (NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)), __VA_ARGS__, 0)

#define NL_NO_PARENT nl_private_no_parent()

/*
 * Begin and end a span with names that are known only at run time, for bindings to other languages: fields[0..count)
 * have names, types and values. nl_span_begin_fields sets *span even if it logs nothing. name has at most 4000 bytes
 * and must exist until the span ends. The functions take several times as long as the macros. The functions return:
 *
 *   NL_OK         the event is logged
 *   NL_OFF        the span is not logged
 *   NL_FAILED     an argument is invalid, or the event is lost; nl_error_message() has the reason
 *   NL_MALFORMED  the event is logged, but a value of more than 131072 bytes was truncated
 */
NL_API nl_status nl_span_begin_fields(nl_span *span, nl_log *log, nl_level level, const char *name,
                                      const nl_context *parent, const nl_field *fields, size_t count);
NL_API nl_status nl_span_end_fields(nl_span *span, const nl_field *fields, size_t count);

/* Returns the thread's current context. */
static inline nl_context nl_context_current(void);

/*
 * Sets the current context of the thread to a copy of `context`. If `context` is NULL or empty, the thread then has no
 * current context. Returns the previous context. To detach, attach the previous context again.
 */
NL_API nl_context nl_context_attach(const nl_context *context);

enum { NL_TRACEPARENT_SIZE = 56, NL_TRACESTATE_SIZE = 1024 };

/*
 * Reads text[0..size), the value of a traceparent header, into *context. If text is NULL, reads the environment
 * variable TRACEPARENT, which is ignored in a program with more privileges than its user. Blanks and tabs around the
 * value are ignored. Returns NL_OK. Returns NL_OFF and sets an empty context if the variable is missing. Returns
 * NL_FAILED and sets an empty context if the value is invalid; nl_error_message() then has the reason. An empty context
 * begins a new trace. The function clears flags that level 2 does not define. If a request has two traceparent headers,
 * treat both as invalid.
 */
NL_API nl_status nl_traceparent_parse(const char *text, size_t size, nl_context *context);

/*
 * Writes the traceparent of a context with a NUL, for a request header or, with setenv(3), for programs that the
 * process starts. Returns the length of the traceparent, 55 bytes. If the context is empty, writes "" and returns 0. If
 * the trace is not sampled, the traceparent has a new span ID, which no log contains.
 */
NL_API size_t nl_traceparent_format(const nl_context *context, char text[NL_TRACEPARENT_SIZE]);

/*
 * Appends text[0..size), the value of a tracestate header, to state, a NUL-terminated string that is "" at first. Call
 * this function once for each tracestate header, in the order of the headers, and only if the traceparent is valid.
 * Pass the result on with every traceparent of the trace. The function removes blanks around members, empty members,
 * and repeated keys. Returns NL_OK, or NL_FAILED with an empty state if a member is invalid or there are more than 32
 * members. In this case, discard the whole tracestate. Repeated keys within text count towards these 32 members,
 * although the function removes them; empty members do not count. Members that do not fit are removed, beginning with
 * members of more than 128 bytes, and then with the last members.
 */
NL_API nl_status nl_tracestate_append(char state[NL_TRACESTATE_SIZE], const char *text, size_t size);

NL_END_DECLS

/* ---- Implementation. Programs must not use the names below. ---- */

#include <netlogger/span_private.h>

#endif
