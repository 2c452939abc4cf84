/*
 * What is drawn of a log, and measured: which events are the steps of a lifeline, which fields are loadlines, which
 * events are points. It is inferred from a log (infer.h) or read from a small file:
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
 *   [point Retransmits]
 *   event=TcpRetransmit
 *
 * events are from the first to the last; id are the fields that name an object, with ; between; color is what colours
 * tell apart: a field, or HOST, the least common host that an object visits. Where events name the same thing by
 * different fields, id has these with | between, and the first one that a record has counts: EV.PID|NEXT.PID. With
 * again=true an object begins with every first event, though there was one of that id before: interrupts have no
 * numbers.
 *
 * Ready-made files are found by their names, without .nlv and folder: drawing_read("http") reads
 * netlogger/drawings/http.nlv in the folders of XDG_DATA_HOME, XDG_DATA_DIRS, and where NetLogger is installed.
 */
#ifndef NETLOGGER_ANALYSIS_DRAWING_H
#define NETLOGGER_ANALYSIS_DRAWING_H

#include <glib.h>
#include <netlogger.h>
#include <stdbool.h>

typedef struct drawing_lifeline {
    char *name;
    char **events; /* in order, NULL at the end */
    char **ids;    /* likewise */
    char *color;   /* a field's name */
    bool again;    /* an object begins with every first event */
} drawing_lifeline;

typedef struct drawing_loadline {
    char *name;
    char *event;
    char *field;
    char *unit; /* "" when not known */
} drawing_loadline;

typedef struct drawing_point {
    char *name;
    char *event;
} drawing_point;

typedef struct drawing {
    char *title;          /* NULL when there is none */
    GPtrArray *lifelines; /* drawing_lifeline */
    GPtrArray *loadlines; /* drawing_loadline */
    GPtrArray *points;    /* drawing_point */
    GPtrArray *quiet;     /* char *: events that are nothing of it, and known to be; they are in no file */
} drawing;

drawing *drawing_new(void);
void drawing_free(drawing *d);

/* Add to a drawing; everything is copied. events and ids have NULL at the end. The lifeline stays the drawing's. */
drawing_lifeline *drawing_add_lifeline(drawing *d, const char *name, const char *const *events, const char *const *ids,
                                       const char *color);
void drawing_add_loadline(drawing *d, const char *name, const char *event, const char *field, const char *unit);
void drawing_add_point(drawing *d, const char *name, const char *event);

/*
 * Finds what an id says of a record: the field, or the first of several, with | between, that it has. False when it has
 * none.
 */
bool drawing_find_id(const nl_record *record, const char *id, nl_field *field);

/* The names of ready-made drawings that can be found, by name, NULL at the end; to be freed with g_strfreev. */
char **drawing_names(void);

/* Reads the file, or, where there is none and it is no path, the ready-made one of that name. NULL on
 * failure. */
drawing *drawing_read(const char *path);

/* What the file would be; to be freed with g_free. Equal drawings give equal texts. */
char *drawing_text(const drawing *d);

/* Reads such a text. NULL on failure. */
drawing *drawing_parse(const char *text);

drawing *drawing_copy(const drawing *d);

/*
 * Whether it can be written and read back as it is: each lifeline has at least two events and an id, no two have the
 * same name, and so on. Returns false when it cannot.
 */
bool drawing_check(const drawing *d);

/* Writes it. Returns false on failure. */
bool drawing_write(const drawing *d, const char *path);

#endif
