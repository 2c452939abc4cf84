/*
 * Finds the lines of single requests, for pictures that show few requests: the edges of the request's graph
 * (requests/request_graph.h), and the request's duration and slowest span. Pictures of many requests use the lists of
 * the store.
 *
 * The module reads the records of a request again from its log, because the store has no identifiers of spans. The
 * module keeps the lines of the latest requests. At the first lookup in a lifeline, the module learns from a sample of
 * the lifeline's requests which events cause which other events. If the sample was small, the module learns again when
 * the log has twice as many records. The model owns a request_lines and locks it.
 *
 * Callers identify a request by its lifeline and one of its records. The record may belong to no object of the
 * lifeline, or the lifeline may be REQUEST_NO_LIFELINE (request_list.h). The request then consists of the outermost
 * span that the record describes or ends, and of the spans in this span.
 */
#ifndef NLV_REQUEST_LINES_H
#define NLV_REQUEST_LINES_H

#include "model/model.h"

/* For a request with more steps, the module finds only the lines between its last steps. */
enum { REQUEST_LINES_STEPS_MAX = 2000 };

typedef struct request_line {
    uint32_t from, to; /* records */
    float certainty;   /* for an inferred line, see request_edge; otherwise 1 */
    bool is_inferred;
    bool is_impossible; /* the cause is certain, but is later than its effect by more than the maximum difference of the
                           clocks */
} request_line;

typedef struct request_drawn {
    uint32_t last;          /* the last record */
    GArray *lines;          /* request_line */
    bool has_graph;         /* false: the request has too many or no readable steps; ignore the members below */
    int64_t from_ns, to_ns; /* start and end of the request */
    char *slowest;          /* name of the span with the longest self time on the critical path; NULL: no span */
    int64_t slowest_ns;     /* self time of this span on the critical path, in nanoseconds */
} request_drawn;

request_lines *request_lines_new(void);
void request_lines_free(request_lines *r); /* NULL is allowed */

/* Drops the lines and samples that the module keeps. Call the function when the numbers of records or the drawing
 * change. */
void request_lines_forget(request_lines *r);

/* Returns a request of a lifeline. The result is valid until the next call of a function of this module. */
const request_drawn *request_lines_find(const model *m, size_t lifeline, uint32_t object);

/* Returns whether the lines between two rows of a lifeline are inferred in most requests of a sample. Returns false
 * while nlv reads the logs. */
bool request_lines_usually_inferred(const model *m, size_t lifeline, unsigned from, unsigned to);

struct request_graph;
struct request_span;
struct request_step;
struct request_reader;

/*
 * Returns the records (uint32_t) of the request of a record, by time, or NULL if there are more than
 * REQUEST_LINES_STEPS_MAX. If several logs have the first event of the object, the logs use equal IDs for different
 * requests, so the result contains only the request of the record's log. The caller frees the array with g_array_free.
 */
GArray *request_lines_steps(const model *m, size_t lifeline, uint32_t record);

/*
 * Returns the graph of the request that consists of these records of a lifeline, or NULL if no record is available.
 * Sets *reader to the reader of the events, which has the names of spans and places. The graph and the reader are valid
 * until the next call of a function of this module.
 */
const struct request_graph *request_lines_graph(const model *m, size_t lifeline, const GArray *steps,
                                                struct request_reader **reader);

/* Returns a number that is equal for spans with the same name and program. */
uint64_t request_lines_span_kind(const struct request_span *span);

/* Returns a number that is equal for edges between events of the same kinds, and different from the numbers of spans.
 * The step belongs to the path of the graph, and is not REQUEST_SELF. */
uint64_t request_lines_edge_kind(const struct request_graph *g, const struct request_step *step);

/* Returns the median duration in nanoseconds of the spans or edges of a kind in the sample of a lifeline, or -1 if the
 * sample has fewer than 3 of them. */
double request_lines_median(const model *m, size_t lifeline, uint64_t kind);

/* Returns the line to `record` that begins at the latest record, or NULL. */
const request_line *request_lines_cause(const request_drawn *d, uint32_t record);

#endif
