/*
 * The line of a request, "VERB NAME=value ...": which verb it is, and what it is asked with. Reads what strangers send,
 * and does nothing else, so that it can be tested by itself (tests/fuzz/request.c).
 */
#ifndef NETLOGD_REQUEST_LINE_H
#define NETLOGD_REQUEST_LINE_H

#include <netlogger.h>

struct request;

typedef struct request_verb {
    const char *name;
    const char *fields; /* that it knows, with blanks around each */
    bool control;       /* over the control socket only */
    void (*answer)(struct request *r, const nl_record *asked);
} request_verb;

enum { REQUEST_REASON_SIZE = 100 };

/*
 * Reads line[0..size), what is between the mark and the newline. Returns the verb, one of verbs[0..count), and puts the
 * fields into asked, which point into storage; or NULL, with the words for what is wrong in reason. control is whether
 * verbs for the control socket may be asked.
 */
const request_verb *request_line_read(const char *line, size_t size, const request_verb *verbs, size_t count,
                                      bool control, nl_buffer *storage, nl_record *asked,
                                      char reason[REQUEST_REASON_SIZE]);

#endif
