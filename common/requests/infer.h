/*
 * Infers the drawing of a log from its records.
 *
 * Lifelines: the values of an ID field link different events. For each field, records are grouped by value, and each
 * further event in a group is a link. The field with the most links is the ID, provided that links are frequent among
 * its records. This condition excludes fields such as a host's name, whose few values occur everywhere. Measurements,
 * times and outcomes, which the module recognizes by their names and fractions, are not IDs. Records of sensors belong
 * to no lifeline. Trace IDs are IDs wherever they occur. Further fields join the ID as long as they increase the number
 * of links. For example, the ID needs a second field if two workflows use the same job numbers. The events that begin
 * and end one span (event_names.h) belong to the same lifeline if they carry a common ID. The events are ordered by
 * precedence: an event comes before those that it precedes in most requests (Copeland's rule, which also resolves
 * cycles). The remaining events may make further lifelines.
 *
 * Other events that are repeated may have numeric fields with changing values; these fields are loadlines. If the
 * records carry durations, the loadline is the number of transferred bytes per second. The remaining events are points.
 *
 * Time and memory are linear in the number of records, of which only the first INFER_RECORDS count.
 */
#ifndef NETLOGGER_ANALYSIS_INFER_H
#define NETLOGGER_ANALYSIS_INFER_H

#include "requests/drawing.h"
#include "requests/trace.h"

enum { INFER_RECORDS = 500000 };

/* Returns a drawing of a sorted trace, which may be empty. The caller frees it with drawing_free. */
drawing *infer_drawing(const trace *t);

/*
 * Like infer_drawing, but with one lifeline, which has the given ID fields (a list that ends with NULL). If ids is
 * NULL, infers them.
 */
drawing *infer_drawing_by(const trace *t, const char *const *ids);

#endif
