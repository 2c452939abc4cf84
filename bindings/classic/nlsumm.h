/* Summaries of the transfers that a log contains, as in NetLogger 4. See nltransfer.h, and nl.h for how to compile. */
#ifndef NETLOGGER_CLASSIC_NLSUMM_H
#define NETLOGGER_CLASSIC_NLSUMM_H

#include "nl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NL_summ_T *NL_summ_T;

/* Returns a new summary, which the caller frees with NL_summ_del, or NULL if memory runs out. */
NL_summ_T NL_summ(void);

/*
 * Summarizes the transfers of log. A log has at most one summary. Returns 0, or -1 if an argument is NULL, log has
 * another summary, or memory runs out.
 */
int NL_summ_add_log(NL_summ_T summ, NL_log_T log);

/* Stops summarizing the transfers of log. Returns 0, or -1 if log does not have this summary. */
int NL_summ_remove_log(NL_summ_T summ, NL_log_T log);

/*
 * Set the log to which the summary is written; without this log, the summary is not written. NL_summ_del closes a log
 * that NL_summ_set_output set. Return 0, or -1 if summ is NULL.
 */
int NL_summ_set_output(NL_summ_T summ, NL_log_T log);
int NL_summ_set_shared_output(NL_summ_T summ, NL_log_T log);

/* Frees summ, and removes it from its logs. Does not write the summary; see NL_transfer_finalize. */
void NL_summ_del(NL_summ_T summ);

#ifdef __cplusplus
}
#endif

#endif
