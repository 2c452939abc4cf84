/*
 * Recognises clients of other protocols by their first bytes. Such a client may be a browser that a web page has caused
 * to send a request to the collector's port (cross-protocol scripting), or a TLS client that connects to a port without
 * TLS. Their bytes contain no records. The module only examines bytes, so that it can be tested separately. It has no
 * state.
 */
#ifndef NETLOGD_FOREIGN_H
#define NETLOGD_FOREIGN_H

#include <stddef.h>

typedef enum foreign_kind {
    FOREIGN_NONE,
    FOREIGN_PERHAPS, /* more bytes are needed */
    FOREIGN_HTTP,
    FOREIGN_TLS,
} foreign_kind;

/*
 * Returns the kind of a connection that begins with these bytes. Returns FOREIGN_PERHAPS only if there are at most 8
 * bytes. If HTTP does not define a method, the function recognises it only when the first line is complete.
 */
foreign_kind foreign_recognise(const char *data, size_t size);

/*
 * foreign_answer returns the reply that netlogd sends before it closes the connection. foreign_reason returns the
 * reason, for netlogd's log.
 */
const char *foreign_answer(foreign_kind kind, size_t *size);
const char *foreign_reason(foreign_kind kind);

#endif
