/*
 * The merged log: every record of every client, whole lines, in the order in which they came.
 *
 * Records are collected and written many at a time. When writing fails (a full disk) they stay in memory, which grows
 * by no more than what one read from a client brought: the server reads nothing more until output_flush has succeeded
 * again.
 */
#ifndef NETLOGD_OUTPUT_H
#define NETLOGD_OUTPUT_H

#include <netlogger.h>

typedef struct output output;

/* Opens path ("-": standard output). NULL with the reason in nl_error_message(). */
output *output_open(const char *path);

/* Whether the record's raw text is a plain line of ULM, which is added as it came. */
bool output_takes_raw(const nl_record *record);

/* Adds a record, as the bytes that came in where those are a plain line of ULM. */
void output_put(output *out, const nl_record *record);

/* Writes what was collected. NL_FAILED: it stays, and output_is_blocked until a later flush succeeds. */
nl_status output_flush(output *out);
bool output_is_blocked(const output *out);
bool output_is_empty(const output *out);

/* Opens the path anew. On NL_FAILED the old file stays in use. */
nl_status output_reopen(output *out);

/* Flushes and closes. */
nl_status output_close(output *out);

#endif
