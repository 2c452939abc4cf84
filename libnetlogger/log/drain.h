/*
 * Reads events from rings, converts them to records in order of time, and encodes them for the destination. Used by a
 * log's writer thread, and by recovery after a crash. An nl_drain belongs to one thread.
 */
#ifndef NETLOGGER_LOG_DRAIN_H
#define NETLOGGER_LOG_DRAIN_H

#include "record/block_write.h"
#include "record/text.h"
#include "log/clock.h"
#include "log/ring.h"
#include "log/site.h"

typedef struct nl_drain {
    nl_format format;
    int zstd_level;
    bool one_level; /* syslog: a batch contains records of one level */
    nl_string host, prog;
    nl_clock clock;
    nl_site_table sites;
    nl_record *record;
    char digits[2 * sizeof(nl_span_ids) * NL_SITE_FIELDS_MAX]; /* of IDs in the record */
    nl_level level;                                            /* level of the batch, with one_level */
    uint64_t lost;                                             /* number of events reported as lost */
    nl_ring **heap; /* text: rings with events, ordered by the time of their next event */
    size_t heap_size, heap_capacity;
    nl_text_shape **text_shapes; /* text: by site; NULL: no events yet */
    size_t text_shape_capacity;
    nl_known_second second;
    nl_block_writer block;
    unsigned block_source; /* binary: index of the source of typed events in this block, plus 1 */
    unsigned *shapes;      /* by site, twice: index of its shape in this block, plus 1; outside of spans and in spans */
    size_t shape_capacity;
} nl_drain;

/* host and prog must outlive the drain. Returns false if memory runs out. Call nl_drain_finish in any case. */
bool nl_drain_start(nl_drain *drain, nl_format format, nl_string host, nl_string prog);
void nl_drain_finish(nl_drain *drain);

/* Sets the format of the records that later calls return. */
void nl_drain_set_format(nl_drain *drain, nl_format format);

/*
 * Reads events up to until_ticks from the pinned rings of a list, appends them encoded to out until it has limit bytes,
 * and advances each ring's at and sequence. Text is ordered by time over all rings; each block has the events of one
 * ring. Sets *count to the number of records. If memory runs out, returns NL_FAILED with out unchanged; the rings' at
 * and sequence are invalid until nl_ring_pin.
 */
nl_status nl_drain_take(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit,
                        uint64_t *count);

#endif
