/*
 * The protocols that nlkernel trace recognizes. Each protocol has a file that finds the requests and replies in the
 * bytes that a process sends and receives.
 *
 * The functions get the first TRACE_CAPTURE_MAX bytes of the data of each call, which may come from any program and
 * have any content. The functions keep only names: a method, a path without its query, the verb and the object of a
 * statement, or a status. The functions never keep a value, which may be a secret. To add a protocol, write its file
 * and add its description to protocols.c. The module has no state.
 */
#ifndef NLKERNEL_TRACE_PROTOCOL_H
#define NLKERNEL_TRACE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTOCOL_VERB_SIZE = 40, PROTOCOL_OBJECT_SIZE = 160, PROTOCOL_STATUS_SIZE = 24 };

/* The data of one call. */
typedef struct protocol_bytes {
    const char *data;
    size_t captured;  /* number of bytes in data */
    uint64_t size;    /* size of the call's data in bytes */
    const char *tail; /* the last bytes of the call */
    size_t tail_size; /* 0: unknown */
} protocol_bytes;

typedef struct protocol_request {
    char verb[PROTOCOL_VERB_SIZE];     /* the method or the verb of a statement, such as GET or SELECT; or "" */
    char object[PROTOCOL_OBJECT_SIZE]; /* the path, the table or the function; or "" */
    char trace_id[33], parent_id[17];  /* IDs from the traceparent header; or "" */
    bool several;                      /* the call contains several requests, or the first bytes of another request */
    bool silent;                       /* no reply follows */
} protocol_request;

/* The progress of a reply. */
typedef enum protocol_progress {
    PROTOCOL_INTERIM,  /* the data is not part of the reply, which comes later */
    PROTOCOL_MORE,     /* more bytes follow */
    PROTOCOL_COMPLETE, /* these bytes end the reply */
    PROTOCOL_UNKNOWN,  /* the protocol cannot find the end of the reply */
} protocol_progress;

/* Initially all zero. */
typedef struct protocol_reply {
    char status[PROTOCOL_STATUS_SIZE];
    char grpc_status[3]; /* from the trailers of HTTP/2; or "" */
    bool failed;
    uint64_t left; /* if `counted`, number of bytes of the reply that are still missing */
    bool begun, counted, chunked;
} protocol_reply;

typedef struct description description;

typedef struct protocol {
    const char *name;
    const char *object_field; /* name of the field for protocol_request.object */
    bool names_object;        /* the object is part of the event's name */

    /* Returns whether the bytes begin a request. Fills in *request, which the caller has set to zeros. */
    bool (*read_request)(const protocol_bytes *bytes, protocol_request *request);

    /* Reads the data of one call of a reply. Calls for a reply come in order. If the first calls have only a few bytes,
     * the data of the next call begins with these bytes again, and *reply is all zeros again. */
    protocol_progress (*read_reply)(const protocol_bytes *bytes, const protocol_request *request,
                                    protocol_reply *reply);

    /* If `description` is not NULL, description.h reads requests and replies, and the functions above are NULL. */
    const description *description;
} protocol;

extern const protocol protocol_dns, protocol_http, protocol_memcached, protocol_mysql, protocol_postgresql,
    protocol_redis, protocol_tls;

/* DNS in datagrams, which protocol_find never returns. */
extern const protocol protocol_dns_datagram;

/* Returns the protocol that recognizes the bytes as a request, and fills in *request. Returns NULL if no protocol
 * recognizes the bytes. */
const protocol *protocol_find(const protocol_bytes *bytes, protocol_request *request);

/* HTTP/2. The module frames.h reads its requests and replies, so the functions of this protocol are NULL. */
extern const protocol protocol_http2;

/*
 * Copies the path of an HTTP target to request->object, without the query, the fragment and parameters after a
 * semicolon, which may contain a session ID. Copies nothing if the target has no path.
 */
void protocol_copy_path(protocol_request *request, const char *target, size_t length);

/* Copies the IDs of the traceparent header. Ignores an invalid header. */
void protocol_read_traceparent(protocol_request *request, const char *value, size_t length);

/*
 * Reads the head of a DNS message in a datagram: its ID, a hash of the ID and the question, and whether it is a reply.
 * Returns false if the datagram is not a DNS message.
 */
bool protocol_dns_identify(const protocol_bytes *bytes, uint16_t *id, uint32_t *question, bool *is_reply);

/* Copies a name and adds a NUL. Cuts the name after `size` - 1 characters, and before the first character that is a
 * space or not printable ASCII. */
void protocol_copy_name(char *to, size_t size, const char *from, size_t length);

/* Return whether the data begins with a TLS record: of a handshake that is not encrypted, or an encrypted record. */
bool protocol_begins_tls(const protocol_bytes *bytes);
bool protocol_is_encrypted(const protocol_bytes *bytes);

#endif
