/* The output of nlsensor. output_log.c writes to any destination. output_text.c, which nlagentd's sensors use, writes
 * only to standard output, and therefore needs less memory, no threads and no TLS. */
#ifndef NLAGENT_OUTPUT_H
#define NLAGENT_OUTPUT_H

#include <netlogger.h>

typedef struct output {
    bool good; /* no error so far */
    nl_log *log;
    nl_buffer text; /* records of the current measurement */
    char host[256];
} output;

/* Opens the destination. Exits with a message on failure. */
void output_open(output *out, const char *destination);

/* Writes a record. On failure, reports the problem and returns false. */
bool output_put(output *out, nl_record *record);
bool output_flush(output *out); /* called at the end of a measurement */
bool output_close(output *out); /* returns false if an error has occurred */

#endif
