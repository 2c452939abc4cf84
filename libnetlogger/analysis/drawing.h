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
 * tell apart: a field, or HOST, the least common host that an object visits.
 */
#ifndef NETLOGGER_ANALYSIS_DRAWING_H
#define NETLOGGER_ANALYSIS_DRAWING_H

#include <glib.h>
#include <netlogger.h>

typedef struct drawing_lifeline {
    char *name;
    char **events; /* in order, NULL at the end */
    char **ids;    /* likewise */
    char *color;   /* a field's name */
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
} drawing;

drawing *drawing_new(void);
void drawing_free(drawing *d);

/* Add to a drawing; everything is copied. events and ids have NULL at the end. */
void drawing_add_lifeline(drawing *d, const char *name, const char *const *events, const char *const *ids,
                          const char *color);
void drawing_add_loadline(drawing *d, const char *name, const char *event, const char *field, const char *unit);
void drawing_add_point(drawing *d, const char *name, const char *event);

/* Reads the file. NULL with the file and the reason in *message (to be freed with g_free). */
drawing *drawing_read(const char *path, char **message);

/* What the file would be; to be freed with g_free. Equal drawings give equal texts. */
char *drawing_text(const drawing *d);

/* Reads such a text. NULL with the reason in *message (to be freed with g_free). */
drawing *drawing_parse(const char *text, char **message);

drawing *drawing_copy(const drawing *d);

/*
 * Whether it can be written and read back as it is: each lifeline has at least two events and an id, no two have the
 * same name, and so on. False with the reason in *message (to be freed with g_free).
 */
bool drawing_check(const drawing *d, char **message);

/* Writes it. False with the reason in *message. */
bool drawing_write(const drawing *d, const char *path, char **message);

#endif
