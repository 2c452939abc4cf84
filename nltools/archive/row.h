/* A record as a database row: standard fields, other fields as JSON, and the packed record. Not thread-safe. */
#ifndef NLTOOLS_ARCHIVE_ROW_H
#define NLTOOLS_ARCHIVE_ROW_H

#include "convert/convert.h"
#include "convert/keys.h"

typedef struct row {
    int64_t time_ns;
    nl_string host, prog, level, event; /* UTF-8 without NUL; data is NULL for a missing field */
    nl_string fields;                   /* a JSON object */
    nl_string packed;
} row;

typedef struct row_maker {
    keys keys;
    nl_buffer fields, packed, texts[4];
    sink unused; /* counts values that JSON cannot represent; ignored, because packed is complete */
} row_maker;

/* Creates the row of a record. The row is valid until the next call. Returns false if the record is too large. */
bool row_make(row_maker *m, const nl_record *record, row *out);
void row_maker_free(row_maker *m);

/* Unpacks a record. Sets *typed to whether the record's values have types; without types, a text may represent a
 * number. Returns NL_OK, or sets the error. */
nl_status row_unpack(nl_record *record, nl_string packed, bool *typed);

#endif
