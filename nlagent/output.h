/*
 * Where nlsensor's records go. output_log.c logs them to any destination, standard output among them; output_text.c,
 * for nlagentd's sensors, only writes to standard output, and does without what a log takes: TLS, a thread and its
 * memory.
 */
#ifndef NLAGENT_OUTPUT_H
#define NLAGENT_OUTPUT_H

#include <netlogger.h>

typedef struct output {
    bool good; /* nothing went wrong so far */
    nl_log *log;
    nl_buffer text; /* of the look, until it is over */
    char host[256];
} output;

/* Ends the program, with the reason, when it can't be opened. */
void output_open(output *out, const char *destination);

/* Returns false after reporting the problem. */
bool output_put(output *out, nl_record *record);
bool output_flush(output *out); /* a look is over */
bool output_close(output *out); /* whether all went well, all the time */

#endif
