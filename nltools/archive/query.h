/* nlarchive query: writes a database's records in any format that nlconv can write. Not thread-safe. */
#ifndef NLTOOLS_ARCHIVE_QUERY_H
#define NLTOOLS_ARCHIVE_QUERY_H

#include "archive/store.h"

#include "convert/output.h"

typedef struct query {
    const nl_filter *where;
    int64_t from_ns, to_ns; /* INT64_MIN and INT64_MAX: no limit */
    const exporter_kind *to;
    const char *drawing; /* path of an nlv drawing, or NULL */
    bool quiet;
} query;

/* Writes the records in time order. On failure, reports the error and returns false. */
bool query_run(store *s, const query *q, output *out);

#endif
