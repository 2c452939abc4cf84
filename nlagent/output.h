/*
 * The output of nlsensor. output_log.c writes to any destination. output_text.c, for nlagentd's sensors, writes only to
 * standard output; it uses less memory, no threads and no TLS.
 */
#ifndef NLAGENT_OUTPUT_H
#define NLAGENT_OUTPUT_H

#include <netlogger.h>

typedef struct output {
    bool good; /* no error so far */
    nl_log *log;
    nl_buffer text; /* records of the current measurement */
    char host[256];
} output;

/* Ends the program with a message if the destination cannot be opened. */
void output_open(output *out, const char *destination);

/* Returns false after reporting the problem. */
bool output_put(output *out, nl_record *record);
bool output_flush(output *out); /* at the end of a measurement */
bool output_close(output *out); /* returns false if any error occurred */

#endif
