/*
 * What a log is about, found from the log itself, for who has written no file that says it.
 *
 * Lifelines. A field names objects when its values tie different events together: for each field, records are grouped
 * by its value, and each further event that a group holds is a link. The field with the most links is an id, provided
 * that links are not rare among its records (which leaves out fields like a host's name, whose few values are
 * everywhere). A second field is added to the id while that makes more links (two workflows that number their jobs
 * alike). Its events are the steps; their order is by precedence: an event comes before those that it precedes in most
 * objects (Copeland's rule, which settles cycles too). What events are left over may make further lifelines.
 *
 * Loadlines are numeric fields, with changing values, of other events that come again and again; points are the rest.
 *
 * Time and memory are linear in the records looked at, of which there are at most INFER_RECORDS, the first ones.
 */
#ifndef NETLOGGER_ANALYSIS_INFER_H
#define NETLOGGER_ANALYSIS_INFER_H

#include "requests/drawing.h"
#include "requests/trace.h"

enum { INFER_RECORDS = 500000 };

/* A drawing for a sorted trace, the caller's to free. It may be empty, when the trace is. */
drawing *infer_drawing(const trace *t);

/* As infer_drawing, with the id fields of its one lifeline given (NULL at the end), or found when ids is NULL. */
drawing *infer_drawing_by(const trace *t, const char *const *ids);

#endif
