/*
 * A log as what it means, for formats that are drawings of it: its records in order, its lifelines, loadlines and
 * points (analysis/). All of the log is kept in memory. Of one thread.
 */
#ifndef NETLOGGER_CONVERT_PICTURE_H
#define NETLOGGER_CONVERT_PICTURE_H

#include "requests/drawing.h"
#include "requests/lifelines.h"
#include "requests/trace.h"

typedef struct picture {
    trace *trace;
    drawing *drawing;
    GPtrArray *lifelines; /* lifelines *, one for each definition in the drawing */
} picture;

picture *picture_new(void);
void picture_free(picture *p);

/* All records were added to p->trace: sorts them, and finds out what they mean, or takes it from given, which becomes
 * the picture's. */
void picture_finish(picture *p, drawing *given);

/* Reads the file that says what a log means, for the exporters' share: *given is NULL without one. False after having
 * said why. */
typedef struct picture_config {
    drawing *drawing;
} picture_config;
void *picture_share(const char *drawing_path);
void picture_unshare(void *shared);

/* The drawing of a config, once: then it is the caller's. */
drawing *picture_take(void *shared);

/* An object's values of its id fields, with blanks between, to be freed with g_free. */
char *picture_object_name(const picture *p, const lifelines *l, const lifeline_object *object);

#endif
