#include "config.h"

#include "transport/spool_losses.h"

#include "record/block_read.h"
#include "record/block_write.h"

#include <string.h>

static bool add_range(nl_buffer *losses, const nl_block_identity *range)
{
    nl_block_identity *all = (nl_block_identity *)(void *)losses->data;
    for (size_t i = 0; i < losses->size / sizeof *all; i++) {
        if (memcmp(all[i].stream, range->stream, sizeof range->stream) != 0 ||
            all[i].first_sequence != range->first_sequence - range->lost)
            continue;
        all[i].first_sequence = range->first_sequence;
        all[i].lost += range->lost;
        if (range->lost_from_ns < all[i].lost_from_ns)
            all[i].lost_from_ns = range->lost_from_ns;
        if (range->lost_to_ns > all[i].lost_to_ns)
            all[i].lost_to_ns = range->lost_to_ns;
        return true;
    }
    return nl_buffer_append(losses, (const char *)range, sizeof *range);
}

bool nl_spool_losses_add(nl_buffer *losses, const char *data, size_t size)
{
    nl_block_header h;
    for (size_t at = 0, block; (block = nl_block_whole_size(data + at, size - at, &h)) > 0; at += block) {
        if (h.type != NL_BLOCK_TYPE_RECORDS || !nl_block_has_stream(&h) || h.record_count + h.lost == 0)
            continue;
        nl_block_identity range = {.first_sequence = h.first_sequence + h.record_count,
                                   .lost = h.lost + h.record_count,
                                   .lost_from_ns = h.lost > 0 ? h.lost_from_ns : h.min_time_ns,
                                   .lost_to_ns = h.record_count > 0 ? h.max_time_ns : h.lost_to_ns};
        memcpy(range.stream, h.stream, sizeof range.stream);
        if (!add_range(losses, &range))
            return false;
    }
    return true;
}

bool nl_spool_losses_encode(const nl_buffer *losses, nl_buffer *out)
{
    const nl_block_identity *all = (const nl_block_identity *)(const void *)losses->data;
    nl_block_writer writer = {0};
    bool good = true;
    for (size_t i = 0; good && i < losses->size / sizeof *all; i++)
        good = nl_block_finish(&writer, &all[i], 0, out);
    nl_block_writer_free(&writer);
    return good;
}
