/*
 * Out of the rings: events into records, in the order of their times, encoded for the destination. The writer thread of
 * a log does this, and after a crash whoever recovers its rings.
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
    bool one_level; /* syslog: a batch holds records of one level only */
    nl_string host, prog;
    nl_clock clock;
    nl_site_table sites;
    nl_record *record;
    nl_level level; /* of the batch, with one_level */
    uint64_t lost;  /* events that were reported as lost, so far */
    nl_ring **heap; /* text: the rings that have events, by the time of their next one */
    size_t heap_size, heap_capacity;
    nl_text_shape **text_shapes; /* text: by site, NULL where there was none of its events yet */
    size_t text_shape_capacity;
    nl_known_second second;
    nl_block_writer block;
    unsigned block_source; /* binary: the source of typed events in this block, plus one */
    unsigned *shapes;      /* by site, its shape in this block, plus one */
    size_t shape_capacity;
} nl_drain;

/* host and prog are borrowed. False when there is no memory; nl_drain_finish is called all the same. */
bool nl_drain_start(nl_drain *drain, nl_format format, nl_string host, nl_string prog);
void nl_drain_finish(nl_drain *drain);

/* What is taken from here on is encoded so. */
void nl_drain_set_format(nl_drain *drain, nl_format format);

/*
 * Takes events up to until_ticks out of the rings in the list (pinned, by ->next), encodes them to the end of out until
 * it holds limit bytes, and moves their ->at and ->sequence. Text is in order of time over all rings; in blocks each
 * ring's events stand by themselves. *count is the number of records. NL_FAILED, with out as it was, when there is no
 * memory: what the rings' ->at and ->sequence say then is to be forgotten (nl_ring_pin reads them again).
 */
nl_status nl_drain_take(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit,
                        uint64_t *count);

#endif
