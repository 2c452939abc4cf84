/*
 * The analysis of a log for formats that draw it: the records in order, and the lifelines, loadlines and points
 * (common/requests). The whole log is in memory. One thread.
 */
#ifndef NETLOGGER_CONVERT_PICTURE_H
#define NETLOGGER_CONVERT_PICTURE_H

#include "requests/drawing.h"
#include "requests/lifelines.h"
#include "requests/trace.h"

typedef struct picture {
    trace *trace;
    drawing *drawing;
    GPtrArray *lifelines; /* of lifelines *, one for each definition in the drawing */
} picture;

picture *picture_new(void);
void picture_free(picture *p);

/* Sorts the records in p->trace and analyses them by the definitions in given, which p then owns; NULL: infers them. */
void picture_finish(picture *p, drawing *given);

/* share and unshare of the exporters that draw: reads the nlv configuration file, if there is one. */
typedef struct picture_config {
    drawing *drawing;
} picture_config;
void *picture_share(const char *drawing_path);
void picture_unshare(void *shared);

/* Returns the drawing of a shared configuration; the caller owns it. Call once. */
drawing *picture_take(void *shared);

/* Returns the values of an object's ID fields, separated by blanks. The caller frees the text with g_free. */
char *picture_object_name(const picture *p, const lifelines *l, const lifeline_object *object);

#endif
