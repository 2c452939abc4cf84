/* A record as a row of the table: its standard fields, its other ones as JSON, and all of it packed, byte for byte. */
#ifndef NLTOOLS_ARCHIVE_ROW_H
#define NLTOOLS_ARCHIVE_ROW_H

#include "convert/convert.h"
#include "convert/keys.h"

typedef struct row {
    int64_t time_ns;
    nl_string host, prog, level, event; /* in UTF-8 and without NUL; data is NULL when there is none */
    nl_string fields;                   /* an object of JSON */
    nl_string packed;
} row;

typedef struct row_maker {
    keys keys;
    nl_buffer fields, packed, texts[4];
    sink unused; /* for losses, of which there are none: packed has everything */
} row_maker;

/* Makes a row, valid until the next one. False when the record is too large. */
bool row_make(row_maker *m, const nl_record *record, row *out);
void row_maker_free(row_maker *m);

/* Reads what is packed. *typed: its values have types, otherwise they are text that may be meant as numbers. */
nl_status row_unpack(nl_record *record, nl_string packed, bool *typed);

#endif
