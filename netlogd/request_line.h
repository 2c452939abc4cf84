/*
 * The line of a request, "VERB NAME=value ...". This module only parses the line, so that it can be tested separately
 * (tests/fuzz/request.c). It has no state.
 */
#ifndef NETLOGD_REQUEST_LINE_H
#define NETLOGD_REQUEST_LINE_H

#include <netlogger.h>

struct request;

typedef struct request_verb {
    const char *name;
    const char *fields; /* accepted fields, with blanks around each */
    bool control;       /* over the control socket only */
    nl_status (*answer)(struct request *r, const nl_record *asked);
} request_verb;

/*
 * Parses line[0..size), which is the text between the mark and the newline. Returns the verb, one of verbs[0..count),
 * and puts the fields, which point into storage, into asked. Returns NULL after setting the error. control: verbs for
 * the control socket are allowed.
 */
const request_verb *request_line_read(const char *line, size_t size, const request_verb *verbs, size_t count,
                                      bool control, nl_buffer *storage, nl_record *asked);

#endif
