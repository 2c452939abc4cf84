/*
 * Parses the line of a request, "VERB NAME=value ...". Parsing is a separate module so that it can be tested alone
 * (tests/fuzz/request.c). The module has no state.
 */
#ifndef NETLOGD_REQUEST_LINE_H
#define NETLOGD_REQUEST_LINE_H

#include <netlogger.h>

struct request;

typedef struct request_verb {
    const char *name;
    const char *fields; /* accepted fields, with a blank before and after each field */
    bool control;       /* allowed only on the control socket */
    nl_status (*answer)(struct request *r, const nl_record *asked);
} request_verb;

/*
 * Parses line[0..size), the text between the mark and the newline. Returns the verb, which is one of verbs[0..count).
 * Adds the fields, which point into `storage`, to `asked`. On failure, sets the error and returns NULL. If `control` is
 * true, verbs for the control socket are allowed.
 */
const request_verb *request_line_read(const char *line, size_t size, const request_verb *verbs, size_t count,
                                      bool control, nl_buffer *storage, nl_record *asked);

#endif
