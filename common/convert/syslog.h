/*
 * Reads syslog messages: RFC 5424, RFC 3164, and the lines of the files that syslog daemons and journalctl write.
 *
 *   bytes -> syslog_find_frame -> message -> syslog_read -> record -> sink
 *
 * The importer of files, which all programs use, and netlogd's listeners (netlogd/syslog_input.c) call this module.
 * doc/formats.md describes the fields of a record. Only one thread at a time may use a reader.
 */
#ifndef NETLOGGER_CONVERT_SYSLOG_H
#define NETLOGGER_CONVERT_SYSLOG_H

#include "convert/convert.h"

/* Maximum size in bytes of a message whose size precedes it. A larger number before a message is not a size. */
#define SYSLOG_COUNTED_MAX (16 << 20)

/* The first message in a stream of messages. */
typedef struct syslog_frame {
    size_t size;       /* size of the frame in bytes, with its framing; 0 if the frame is incomplete */
    size_t expected;   /* if the size precedes the message: bytes of the whole frame; otherwise 0 */
    nl_string message; /* the message without its framing; may be empty */
} syslog_frame;

/*
 * Finds the first message in a stream (RFC 6587). Either the message's size and a space precede the message, or the
 * message ends with a newline. A stream may contain both kinds of framing.
 */
syslog_frame syslog_find_frame(const char *data, size_t size);

/* Properties of a message that are not in its bytes. */
typedef struct syslog_about {
    int64_t now_ns;   /* time of receipt: the time of messages without a time, and the origin of times without a year */
    const char *host; /* HOST of messages without a host name, or NULL */
    int priority;     /* priority of messages without a priority, or -1 */
} syslog_about;

typedef struct syslog_reader syslog_reader;
syslog_reader *syslog_reader_new(void);
void syslog_reader_free(syslog_reader *r);

/*
 * Converts a message to a record and passes it to the sink. Returns false and sets the error if the text has neither a
 * priority nor a time, so that it is not a syslog message. Also fails if the field that import_about names contains no
 * time. If `any` is true, accepts any text.
 */
bool syslog_read(syslog_reader *r, nl_string message, const syslog_about *about, bool any, sink *s);

/* Returns the level for a syslog severity from 0 to 7. */
nl_level syslog_level(unsigned severity);

#endif
