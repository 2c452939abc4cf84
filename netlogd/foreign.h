/*
 * Recognises clients of other protocols by their first bytes: a browser that was made to send a request to the
 * collector's port (cross-protocol scripting), or a client of TLS where plain records are expected. Nothing that they
 * send is a record. Looks at bytes only, so that it can be tested by itself.
 */
#ifndef NETLOGD_FOREIGN_H
#define NETLOGD_FOREIGN_H

#include <stddef.h>

typedef enum foreign_kind {
    FOREIGN_NONE,
    FOREIGN_PERHAPS, /* more bytes will tell */
    FOREIGN_HTTP,
    FOREIGN_TLS,
} foreign_kind;

/*
 * What a connection is that begins with these bytes. FOREIGN_PERHAPS only up to 8 bytes. A method that HTTP does not
 * define is recognised when the whole first line is there, by its end.
 */
foreign_kind foreign_recognise(const char *data, size_t size);

/* What such a client is answered before the connection is closed, and the reason for the log. */
const char *foreign_answer(foreign_kind kind, size_t *size);
const char *foreign_reason(foreign_kind kind);

#endif
