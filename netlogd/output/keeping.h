/*
 * Copies the requests that keep_where= selects out of a file before netlogd deletes the file.
 *
 * The copies of file N are in DIRECTORY/kept/, in one file of blocks that has the name of file N. Requests are built by
 * the rules of nlstat (requests/assembler.h), which also decide when a request has ended. The records of requests that
 * have not ended at the end of file N go to a hidden file of open requests, which precedes file N+1 when that file is
 * due. Therefore each request is evaluated as a whole, and once.
 *
 * netlogd may be killed at any step. Each step replaces a whole file, and can be repeated, because file N and the open
 * requests before it still exist:
 * 1. write the open requests after file N
 * 2. write the kept requests of file N
 * 3. the caller deletes file N
 * 4. at the next call, remove the open requests before file N
 *
 * A thread does this work. It has its own copy of the options. Only the server's thread may call these functions.
 */
#ifndef NETLOGD_OUTPUT_KEEPING_H
#define NETLOGD_OUTPUT_KEEPING_H

#include "options.h"

typedef struct keeping keeping;

typedef struct keeping_result {
    uint64_t requests, records; /* number of kept requests and of their records */
    char reason[200];           /* why the file could not be read or the copies could not be written; "" on success */
} keeping_result;

/* Returns NL_FAILED after setting the error if the expression is invalid or does not select requests. */
nl_status keeping_check_expression(const char *expression);

/* Starts to copy from the file with this number. Returns NULL after setting the error. */
keeping *keeping_start(const output_options *options, uint64_t number);

/* Returns the number of the file. */
uint64_t keeping_number(const keeping *k);

/* Returns whether the thread has ended, and then sets *result. */
bool keeping_has_ended(const keeping *k, keeping_result *result);

/* Stops the thread and frees its state. NULL is allowed. */
void keeping_free(keeping *k);

#endif
