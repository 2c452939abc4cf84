/*
 * Transfers, as in NetLogger 4: events at the start and end of reads and writes, and their summaries. See nl.h for how
 * to compile.
 *
 *   NL_summ_T summ = NL_summ();
 *   NL_summ_set_shared_output(summ, log);
 *   NL_transfer_init(summ, -1, NL_LVL_DEBUG);
 *   NL_summ_add_log(summ, log);
 *   NL_transfer_start(log, NL_LVL_DEBUG, NL_TRANSFER_DISK_READ, id, stream, block);
 *   NL_transfer_end(log, NL_LVL_DEBUG, NL_TRANSFER_DISK_READ, id, stream, block, bytes);
 *   NL_transfer_finalize(summ);
 *
 * For each identifier, operation and stream, a summary has the number of blocks (n and nv) and the seconds from the
 * first start to the last end (dur). It also has the minimum (m), maximum (x), sum (s) and standard deviation (sd) of
 * three values of the blocks: seconds (t), bytes (v) and bytes per second (r).
 */
#ifndef NETLOGGER_CLASSIC_NLTRANSFER_H
#define NETLOGGER_CLASSIC_NLTRANSFER_H

#include "nlsumm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NL_TRANSFER_DISK_READ = 0,
    NL_TRANSFER_DISK_WRITE,
    NL_TRANSFER_NET_READ,
    NL_TRANSFER_NET_WRITE,
    NL_TRANSFER_NOEVENT
} NL_transfer_op_t;

typedef unsigned long long NL_transfer_streamid_t;
typedef unsigned long long NL_transfer_blockid_t;

/*
 * Begins to summarize transfers. If interval is positive, writes a summary of each stream about every interval
 * microseconds, when a block ends. NL_transfer_finalize writes the final summaries. All summaries have the given level.
 * The first call, and the first call after NL_transfer_finalize, begins new summaries; other calls only change the
 * interval and the level.
 * Returns 0, or -1 if summ is NULL.
 */
int NL_transfer_init(NL_summ_T summ, int64_t interval, NL_level_t level);

/*
 * Makes NL_transfer_start and NL_transfer_end also write the events that the summary includes. By default, only the
 * summaries are written.
 */
void NL_transfer_set_passthrough(NL_summ_T summ);

/*
 * Log the start and the end of the transfer of a block. id is the identifier of the whole transfer. bytes is the size
 * of the block.
 */
void NL_transfer_start(NL_log_T log, NL_level_t level, NL_transfer_op_t operation, const char *id,
                       NL_transfer_streamid_t stream, NL_transfer_blockid_t block);
void NL_transfer_end(NL_log_T log, NL_level_t level, NL_transfer_op_t operation, const char *id,
                     NL_transfer_streamid_t stream, NL_transfer_blockid_t block, double bytes);

/*
 * Writes a summary of each stream, with all its blocks since NL_transfer_init began the summaries. Later events are not
 * summarized.
 */
void NL_transfer_finalize(NL_summ_T summ);

/* Returns how many streams of an operation and an identifier have at least one block in the summary. */
unsigned NL_transfer_get_num_streams(NL_summ_T summ, NL_transfer_op_t operation, const char *id);

/*
 * Returns the summaries of an identifier as lines in the format BP, or NULL if memory runs out. The caller frees the
 * text with free(3).
 */
char *NL_transfer_get_result_string(NL_summ_T summ, const char *id);

/* Returns the name of an operation, such as "disk read"; "" for an invalid operation. */
const char *NL_transfer_op_name(NL_transfer_op_t operation);

#ifdef __cplusplus
}
#endif

#endif
