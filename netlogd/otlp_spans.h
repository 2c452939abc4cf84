/*
 * Recognizes spans that OTLP clients send again because a response was late or lost. A trace ID and a span ID identify
 * a span.
 *
 * The module owns two tables with 64-bit hashes of the latest spans; a secret seed makes collisions unpredictable. The
 * young table has space for 10 million spans, or max-memory/100 if that is less. When the young table is full, it
 * replaces the old table. Therefore, the module knows at least this number of the latest spans, and its tables use at
 * most about half of max-memory.
 *
 * Each table has a file beside the first output that has files. The file contains the seed and the hashes in the order
 * of arrival. otlp_spans_save appends the new hashes after the outputs have settled the spans and before netlogd
 * responds to clients. After a kill, the files have every span of an answered request, and no span that the outputs
 * lack. A span that was settled but not saved is stored again if its client repeats it. Only the server's thread may
 * call the module.
 */
#ifndef NETLOGD_OTLP_SPANS_H
#define NETLOGD_OTLP_SPANS_H

#include <netlogger.h>

/* Fetches the parts of the tables that otlp_spans_has will read into the processor's cache. */
void otlp_spans_expect(nl_string trace, nl_string span);

bool otlp_spans_has(nl_string trace, nl_string span);
void otlp_spans_add(nl_string trace, nl_string span);

/* Appends the hashes of the latest spans to the file. If `sync` is true, waits until they are on the disk. */
void otlp_spans_save(bool sync);

void otlp_spans_free(void);

#endif
