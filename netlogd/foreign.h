/*
 * Recognizes clients of other protocols by their first bytes. For example, a web page can make a browser send a request
 * to netlogd's port (cross-protocol scripting), or a TLS client may connect to a port without TLS. The bytes of such
 * clients contain no records. The module has no state.
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
 * Returns the kind of a connection that begins with these bytes. Returns FOREIGN_PERHAPS only for at most 8 bytes.
 * If HTTP does not define the request's method, recognizes the request only when the first line is complete.
 */
foreign_kind foreign_recognise(const char *data, size_t size);

/*
 * foreign_answer returns the reply that netlogd sends before it closes the connection. foreign_reason returns the
 * reason, for netlogd's log.
 */
const char *foreign_answer(foreign_kind kind, size_t *size);
const char *foreign_reason(foreign_kind kind);

#endif
