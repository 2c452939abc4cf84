/*
 * A drawing defines how programs draw and measure a log: the events that are the steps of lifelines, the fields that
 * are loadlines, and the events that are points. Programs infer a drawing from a log (infer.h) or read it from a file:
 *
 *   [view]
 *   title=Blocks from four servers
 *   [lifeline Block]
 *   events=BlockRequestSend;BlockRequestRecv;BlockDone
 *   id=BLOCK.ID
 *   color=HOST
 *   [loadline CPU]
 *   event=CpuLoad
 *   field=CPU.BUSY
 *   unit=%
 *   [loadline Throughput]
 *   event=Transfer
 *   field=NBYTES
 *   rate=true
 *   [point Retransmits]
 *   event=TcpRetransmit
 *
 * events= lists the events in order. id= lists the fields that identify a request. color= is the field whose values get
 * different colors. HOST means the rarest host of a request: the host that the fewest requests visit. LOG means that
 * each log has its own color, and that equal IDs in different logs identify different requests. If events have the same
 * ID in different fields, join the names of these fields by |, as in EV.PID|NEXT.PID. The ID of a record is the value
 * of the first of these fields that the record has. With again=true, each occurrence of the first event begins a new
 * request, even if its ID is not new.
 *
 * A record of an access log has a duration but no event. Its event is "request" or, if the drawing has such an event,
 * "request of PROG", where PROG is the program of the record.
 *
 * rate=true draws the sum of the field's values per second. If a record has a duration, programs spread its value over
 * that duration.
 *
 * A request may branch. after= lists, for each event, the events that precede it in a request. surely= lists, for each
 * event, the events that certainly cause it, because records name them as its parents. Commas separate the numbers of
 * events, which begin at 0. Without after=, each event follows all events before it in the list. nlv learns after=
 * and surely= from the log (nlv/model/event_order.h).
 *
 * drawing_read("http") reads the ready-made drawing netlogger/drawings/http.nlv from XDG_DATA_HOME, XDG_DATA_DIRS, or
 * the directory where NetLogger is installed. Only one thread at a time may use a drawing.
 */
#ifndef NETLOGGER_ANALYSIS_DRAWING_H
#define NETLOGGER_ANALYSIS_DRAWING_H

#include <glib.h>
#include <netlogger.h>
#include <stdbool.h>

#define DRAWING_COLOR_LOG "LOG" /* see color= above */

enum { DRAWING_ORDERED_MAX = 64 /* maximum number of events of a lifeline with after= */ };

typedef struct drawing_lifeline {
    char *name;
    char **events;   /* names of the events, in the order of the lifeline; NULL follows the last name */
    char **ids;      /* names of the ID fields; NULL follows the last name */
    char *color;     /* name of a field */
    bool again;      /* each occurrence of the first event begins a new request */
    bool traced;     /* infer_drawing found that the lifeline's requests have trace IDs; other lifelines then show other
                        requests */
    uint64_t *after; /* for each event, a bit for each event that precedes it; NULL: all events before it in the list
                        precede it */
    uint64_t *surely; /* for each event, a bit for each event that certainly causes it; NULL if `after` is NULL */
} drawing_lifeline;

typedef struct drawing_loadline {
    char *name;
    char *event;
    char *field;
    char *unit; /* "" means unknown */
    bool rate;  /* draw the sum of the values per second; spread a value over the duration of its record */
} drawing_loadline;

typedef struct drawing_point {
    char *name;
    char *event;
} drawing_point;

typedef struct drawing {
    char *title;          /* NULL: no title */
    GPtrArray *lifelines; /* drawing_lifeline */
    GPtrArray *loadlines; /* drawing_loadline */
    GPtrArray *points;    /* drawing_point */
    GPtrArray *quiet;     /* char *: known events that are not drawn; not stored in files */
    GPtrArray *omitted;   /* char *: measurements that infer_drawing did not make loadlines, such as "CPU.IDLE of CPU";
                             not stored in files */
} drawing;

/*
 * Describes the requests of a log whose drawing has no lifelines: each outermost span of a thread is a request, and so
 * is each record with a duration that names no thread. This lifeline has no name, no events and no IDs.
 */
extern const drawing_lifeline drawing_threads;

drawing *drawing_new(void);
void drawing_free(drawing *d);

/*
 * Returns the lifelines (drawing_lifeline) that describe different requests; the caller frees the array, and the
 * drawing owns its elements. Lifelines with the same IDs show different events of the same requests. The function
 * returns only the first of these lifelines, unless by_events is true.
 */
GPtrArray *drawing_find_requests(const drawing *d, bool by_events);

/*
 * Returns whether the drawing has an event for each program whose records have a duration but no event, such as
 * "request of nginx" (request_unnamed).
 */
bool drawing_splits_unnamed(const drawing *d);

/*
 * Add a lifeline, loadline or point with copies of the arguments. `events` and `ids` end with NULL. The drawing owns
 * the result.
 */
drawing_lifeline *drawing_add_lifeline(drawing *d, const char *name, const char *const *events, const char *const *ids,
                                       const char *color);
drawing_loadline *drawing_add_loadline(drawing *d, const char *name, const char *event, const char *field,
                                       const char *unit);
void drawing_add_point(drawing *d, const char *name, const char *event);

/*
 * Sets l->after and l->surely to copies of these arrays, which have an element for each event. If `after` is NULL, each
 * event follows all events before it in the list.
 */
void drawing_set_order(drawing_lifeline *l, const uint64_t *after, const uint64_t *surely);

/*
 * Finds the field of an ID in a record. If `id` consists of several names joined by |, finds the first of them that the
 * record has. Returns false if the record has none of these fields.
 */
bool drawing_find_id(const nl_record *record, const char *id, nl_field *field);

/* Returns the sorted names of all ready-made drawings. Free the result with g_strfreev. */
char **drawing_names(void);

/*
 * Reads a file, or the ready-made drawing with this name. The caller frees the drawing. Returns NULL and sets the error
 * on failure.
 */
drawing *drawing_read(const char *path);

/*
 * Returns the text of the file that describes the drawing. The caller frees it with g_free. Equal drawings have equal
 * texts.
 */
char *drawing_text(const drawing *d);

/*
 * Creates a drawing from the text of a file. The caller frees the drawing. Returns NULL and sets the error on failure.
 */
drawing *drawing_parse(const char *text);

drawing *drawing_copy(const drawing *d);

/*
 * Returns whether a drawing can be written and read back. Otherwise, sets the error. For example, two lifelines must
 * not have the same name, and a lifeline must have at least two events.
 */
bool drawing_check(const drawing *d);

/*
 * Writes the drawing to a file. If `path` names a regular file, first writes a new file, and replaces the old file with
 * the complete new file. Writes directly to a device or pipe. "-" is standard output. Returns false and sets the error
 * on failure.
 */
bool drawing_write(const drawing *d, const char *path);

#endif
