/*
 * Reads events from rings and encodes them for the destination: as lines of text in time order, or as blocks. A log's
 * writer thread and the recovery after a crash use this module. An nl_drain belongs to one thread.
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
    bool one_level; /* for syslog: a batch contains records of only one level */
    nl_string host, prog;
    nl_clock clock;
    nl_site_table sites;
    nl_record *record;
    char digits[2 * sizeof(nl_span_ids) * NL_SITE_FIELDS_MAX]; /* digits of the IDs in the record */
    nl_level level;                                            /* level of the batch, if one_level is set */
    uint64_t lost;  /* number of events that this drain has reported as lost */
    nl_ring **heap; /* for text: rings with events, ordered by the time of their next event */
    size_t heap_size, heap_capacity;
    nl_text_shape **text_shapes; /* for text: indexed by site; an element is NULL if the site has had no events yet */
    size_t text_shape_capacity;
    nl_known_second second;
    nl_block_writer block;
    unsigned block_source; /* for blocks: index of the source of typed events in this block, plus 1 */
    unsigned *shapes; /* two elements per site, for events outside and in spans; each is the index of the shape in this
                         block, plus 1; 0 if the block lacks the shape */
    size_t shape_capacity;
} nl_drain;

/*
 * Initializes a drain and takes the first reading of its clock. The strings host and prog must outlive the drain.
 * Afterwards, the caller sets the members one_level, zstd_level, sites.shared and sites.size. Returns false if memory
 * runs out. Call nl_drain_finish even after a failure.
 */
bool nl_drain_start(nl_drain *drain, nl_format format, nl_string host, nl_string prog);
void nl_drain_finish(nl_drain *drain);

/* Sets the format of the records that later calls return. */
void nl_drain_set_format(nl_drain *drain, nl_format format);

/*
 * Reads events up to until_ticks from the pinned rings of a list. Encodes the events and appends them to `out` until
 * `out` has at least `limit` bytes or, if one_level is set, the level changes. Advances the members `at` and `sequence`
 * of each ring. Text records of all rings are ordered by time. Each block has the events of only one ring. Sets *count
 * to the number of appended records and returns NL_OK. If memory runs out, returns NL_FAILED with `out` unchanged; the
 * rings' `at` and `sequence` are then invalid until the next nl_ring_pin.
 */
nl_status nl_drain_take(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit,
                        uint64_t *count);

#endif
