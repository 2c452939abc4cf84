/*
 * A drawing defines what programs draw and measure in a log: which events are the steps of lifelines, which fields are
 * loadlines, and which events are points. It is inferred from a log (infer.h) or read from a file:
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
 * different colours, or HOST for the host that the fewest requests visit. If events have the same ID in different
 * fields, the names of these fields are joined by |, as in EV.PID|NEXT.PID. The ID of a record is the value of the
 * first of these names that the record has. With again=true, each first event begins a new request, even if its ID is
 * not new.
 *
 * rate=true draws the sum of a field per second. If a record carries a duration, its value is spread over that
 * duration.
 *
 * A request may branch. after= lists, for each event, the events that come before it in a request. surely= lists the
 * events that certainly cause it: those that records name as its parents. Events are numbered from 0, and the numbers
 * are separated by commas. Without after=, each event comes after all events before it in the list. Programs learn both
 * from the log (nlv/model/event_order.h).
 *
 * drawing_read("http") reads the ready-made drawing netlogger/drawings/http.nlv from XDG_DATA_HOME, XDG_DATA_DIRS, or
 * the directory where NetLogger is installed. Only one thread at a time may use a drawing.
 */
#ifndef NETLOGGER_ANALYSIS_DRAWING_H
#define NETLOGGER_ANALYSIS_DRAWING_H

#include <glib.h>
#include <netlogger.h>
#include <stdbool.h>

enum { DRAWING_ORDERED_MAX = 64 /* maximum number of events of a lifeline with after= */ };

typedef struct drawing_lifeline {
    char *name;
    char **events; /* in order, ended by NULL */
    char **ids;    /* ended by NULL */
    char *color;   /* name of a field */
    bool again;    /* each first event begins a new request */
    bool traced;   /* infer_drawing found that its requests have trace IDs; other lifelines then show other requests */
    uint64_t *after; /* for each event, a bit for each event that precedes it; NULL: all events before it in the list */
    uint64_t *surely; /* for each event, a bit for each event that certainly causes it; NULL if `after` is NULL */
} drawing_lifeline;

typedef struct drawing_loadline {
    char *name;
    char *event;
    char *field;
    char *unit; /* "" means unknown */
    bool rate;  /* draw the sum of all values per second; the value of a record with a duration is spread over it */
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
} drawing;

drawing *drawing_new(void);
void drawing_free(drawing *d);

/*
 * Returns the lifelines (drawing_lifeline) that describe different requests; the caller frees the array, and the
 * drawing owns its elements. Lifelines with the same IDs show different events of the same requests. The function
 * returns only the first of these lifelines, unless by_events is true.
 */
GPtrArray *drawing_find_requests(const drawing *d, bool by_events);

/* Add copies to a drawing. events and ids end with NULL. Return the lifeline or loadline, which belongs to the drawing.
 */
drawing_lifeline *drawing_add_lifeline(drawing *d, const char *name, const char *const *events, const char *const *ids,
                                       const char *color);
drawing_loadline *drawing_add_loadline(drawing *d, const char *name, const char *event, const char *field,
                                       const char *unit);
void drawing_add_point(drawing *d, const char *name, const char *event);

/*
 * Sets l->after and l->surely to copies of these arrays. NULL means that each event comes after all events before it in
 * the list.
 */
void drawing_set_order(drawing_lifeline *l, const uint64_t *after, const uint64_t *surely);

/*
 * Finds the field of an ID, or the first of several joined by |, in a record. Returns false if the record has none of
 * these fields.
 */
bool drawing_find_id(const nl_record *record, const char *id, nl_field *field);

/* Returns the sorted names of all ready-made drawings. Free the result with g_strfreev. */
char **drawing_names(void);

/* Reads a file, or the ready-made drawing of that name. Returns NULL on failure. */
drawing *drawing_read(const char *path);

/* Returns the text of the drawing's file. The caller frees it with g_free. Equal drawings have equal texts. */
char *drawing_text(const drawing *d);

/* Makes a drawing from the text of a file. Returns NULL on failure. */
drawing *drawing_parse(const char *text);

drawing *drawing_copy(const drawing *d);

/* Checks that a drawing can be written and read back. Returns false if, for example, two lifelines have the same name
 * or a lifeline has fewer than two events. */
bool drawing_check(const drawing *d);

/* Writes a file. Returns false on failure. */
bool drawing_write(const drawing *d, const char *path);

#endif
