/* nlarchive query: records of an archive, in any format that nlconv writes. */
#ifndef NLTOOLS_ARCHIVE_QUERY_H
#define NLTOOLS_ARCHIVE_QUERY_H

#include "archive/store.h"

#include "convert/output.h"

typedef struct query {
    const nl_filter *where;
    int64_t from_ns, to_ns; /* INT64_MIN and INT64_MAX: all */
    const exporter_kind *to;
    const char *drawing; /* an nlv file; NULL: none */
    bool quiet;
} query;

/* Writes what is asked for, in order of time. False after having said what went wrong. */
bool query_run(store *s, const query *q, output *out);

#endif
