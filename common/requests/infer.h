/*
 * Infers the drawing of a log from its records.
 *
 * A lifeline has an ID field whose values link different events. For each field, the module groups records by value.
 * Each event in a group after the first is a link. The ID is the field with the most links, if at least 5 % of the
 * records with this field are links. This condition excludes fields such as a host's name, whose few values occur
 * everywhere. Measurements, times and outcomes are not IDs; the module recognizes them by their names and fractions.
 * Records of sensors belong to no lifeline. Kernel events belong to lifelines only if the log has no others.
 * Trace IDs are always IDs. Further fields join the ID if they increase the number of links. The events that begin and
 * end one span (event_names.h) belong to the same lifeline if they have a common ID. An event comes before the events
 * that it precedes in most requests (Copeland's rule, which also resolves cycles). The remaining events may form
 * further lifelines.
 *
 * If an event of no lifeline occurs repeatedly, its numeric fields with changing values are loadlines. If the records
 * of the event have durations, the loadline is the number of transferred bytes per second. The remaining events are
 * points.
 *
 * Time and memory are linear in the number of records. Only the first INFER_RECORDS records determine lifelines and
 * loadlines.
 */
#ifndef NETLOGGER_ANALYSIS_INFER_H
#define NETLOGGER_ANALYSIS_INFER_H

#include "requests/drawing.h"
#include "requests/trace.h"

enum { INFER_RECORDS = 500000 };

/*
 * Returns the drawing of a sorted trace, which may be empty. The caller frees the drawing with drawing_free. If several
 * programs log spans without names, such as the records of access logs, the spans of each program are a separate event.
 * Otherwise, a picture would show all these spans in the same row.
 */
drawing *infer_drawing(const trace *t);

/*
 * Returns the drawing of a sorted trace for measurements. The caller frees it with drawing_free. If `ids` (a list that
 * ends with NULL) is not NULL, the drawing has only the lifeline with these ID fields. Spans without names are
 * one event, "request".
 */
drawing *infer_drawing_by(const trace *t, const char *const *ids);

#endif
