/*
 * Decodes header blocks of HTTP/2 (HPACK, RFC 7541), for nlkernel trace. A block may refer to fields of earlier blocks
 * of the same direction of the connection.
 *
 * The module decodes and keeps only the fields of hpack_headers. The module skips the values of all other fields, which
 * may be secrets. An index counts back from the latest field of the dynamic table, and a sender refers only to fields
 * that are still in the table. An index that is at most the number of fields since the latest gap therefore refers to a
 * known field, whatever the size of the table. All larger indexes are unknown. The module never replaces an unknown
 * field with another field.
 *
 * The module keeps HPACK_FIELDS_MAX fields. Blocks may contain any bytes. Not thread-safe.
 */
#ifndef NLKERNEL_TRACE_HPACK_H
#define NLKERNEL_TRACE_HPACK_H

#include "trace/protocol.h"

enum { HPACK_FIELDS_MAX = 128 }; /* maximum number of fields in a table of the default size */

typedef struct hpack hpack;

typedef struct hpack_headers {
    protocol_request request; /* the method, the path without its query, and the IDs from traceparent */
    char status[4];           /* status of HTTP, or "" */
    char grpc_status[3];      /* status of gRPC, or "" */
    bool has_unknown;         /* some fields are unknown, so any member above can be missing */
} hpack_headers;

hpack *hpack_new(void);
void hpack_free(hpack *h); /* NULL is allowed */

/* Forgets the fields of earlier blocks, because header blocks are missing. */
void hpack_forget(hpack *h);

/* Decodes the next block of the direction into *headers. `block` is NULL if its size is 0. If the block is malformed,
 * forgets all fields, and sets only has_unknown in *headers. */
void hpack_read(hpack *h, const uint8_t *block, size_t size, hpack_headers *headers);

#endif
