/*
 * Determines the limits of transfers from the logs of programs that use the classic interface. The records are the
 * transfers of GridFTP servers (FTP_INFO), and the starts and ends of reads and writes, for example of bbcp and of
 * NL_transfer (transfer.disk.read.start, START_READ, STOP_READ). Such logs contain no data about TCP connections, so
 * most of the time is CAUSE_UNKNOWN.
 *
 * The spans of a stream divide its time. During a span that sends or receives data, the limit is unknown, because the
 * span contains all waits for the path and for the peer. During any other span, the disk is the limit. Between the
 * spans, the program is the limit. Records with the same host, program and identifiers (guid, STREAM and similar
 * fields) belong to one stream.
 *
 * Callers: nlstat. Memory: at most CONNECTIONS_MAX transfers; the module ignores further transfers. Only one thread at
 * a time may use the object.
 */
#ifndef NETLOGGER_CONNECTIONS_CLASSIC_TRANSFERS_H
#define NETLOGGER_CONNECTIONS_CLASSIC_TRANSFERS_H

#include "connections/connection_causes.h"

typedef struct classic_transfers classic_transfers;

classic_transfers *classic_transfers_new(void);
void classic_transfers_free(classic_transfers *t); /* NULL is allowed */

/* Adds a record. Ignores records of other events. Records of one host must be in order of time. */
void classic_transfers_add(classic_transfers *t, const nl_record *record);

/* Appends the results to a list of connection_result *. The results belong to t. Call this function once. */
void classic_transfers_finish(classic_transfers *t, GPtrArray *results);

#endif
