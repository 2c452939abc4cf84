/*
 * Recognises spans that OTLP clients send again, because a response was late or was lost. A span is identified by its
 * trace ID and its span ID.
 *
 * The module owns two tables with 64-bit hashes of the latest spans; a secret seed makes collisions unpredictable. When
 * the young table has max-memory/256 spans, it replaces the old table. Therefore, the module knows at least this number
 * of the latest spans, and its memory is at most an eighth of max-memory. The tables do not survive a restart. Only the
 * server's thread may call it.
 */
#ifndef NETLOGD_OTLP_SPANS_H
#define NETLOGD_OTLP_SPANS_H

#include <netlogger.h>

bool otlp_spans_has(nl_string trace, nl_string span);
void otlp_spans_add(nl_string trace, nl_string span);

void otlp_spans_free(void);

#endif
