/*
 * Finds where the requests of a log spend most of their time: the kind of line with the largest share of the requests'
 * critical paths, and the longest single line. The span of a record with a duration counts as a line from the record to
 * itself, unless the path has a cause of the record inside the span. A path leads from a request's last record back
 * through the latest cause of each record. If the time range has few requests, the module finds the causes in the
 * requests' graphs (request_lines.h). Otherwise, the module finds the causes by the order of rows (edges.h). This
 * module has no state.
 */
#ifndef NLV_SLOW_H
#define NLV_SLOW_H

#include "model/model.h"

typedef struct slow_line {
    bool is_found;
    size_t lifeline;
    uint32_t from, to; /* the records that the longest line of this kind joins; equal for the span of one record */
    int64_t begin_ns, end_ns; /* the times of a path that is suitable for the first view (slow_find) */
    size_t requests;          /* number of requests in the sample */
    bool is_sampled;          /* the module has not examined all requests, so there may be longer lines */
} slow_line;

/*
 * Finds the slowest kind of line in a time range, and its longest line. Only the part of a line that is in the range
 * counts. Examines the requests that end in the range, or in the following time of the same length. If there are many
 * records, examines a sample of these requests.
 *
 * begin_ns and end_ns are the times of the path of one line. Usually, this line is the longest line in the middle half
 * of the lines, in order of time. The other lines are near the start and the end of the range, where fewer requests may
 * run. If the longest of all lines is more than twice as long as this line, the function uses the path of the longest
 * line instead.
 */
slow_line slow_find(const model *m, int64_t from_ns, int64_t to_ns);

/*
 * Like slow_find, but finds the longest of all lines in the range. begin_ns and end_ns are the times of its path.
 */
slow_line slow_find_longest(const model *m, int64_t from_ns, int64_t to_ns);

/*
 * Returns the host of a line, or the value of the color field if the line's records are from different hosts. If
 * this value is the name of a third host, returns the names of both hosts. The caller frees the text with g_free.
 */
char *slow_hosts(const model *m, const slow_line *slow);

/*
 * Extends the time from slow->begin_ns to slow->end_ns until at least `count` requests of the line's lifeline begin in
 * this time. The resulting range is at most 61 times as long as the path, because the lines of the path would look
 * vertical in a longer range.
 */
void slow_find_neighbours(const store *s, const slow_line *slow, unsigned count, int64_t *from_ns, int64_t *to_ns);

#endif
