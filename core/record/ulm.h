/*
 * ULM, the Universal format for Logger Messages (draft-abela-ulm-05) as NetLogger uses it:
 *
 *   DATE=20000330112320.957943 HOST=dpss1.lbl.gov PROG=testProg LVL=Usage NL.EVNT=WriteData SEND.SZ=49332
 *
 * DATE is UTC with 0 to 9 digits of fraction; a tenth and what follows are cut off. An ISO 8601 time is taken too.
 */
#ifndef NETLOGGER_FORMAT_ULM_H
#define NETLOGGER_FORMAT_ULM_H

#include "record/text.h"

extern const nl_text_format nl_ulm;
extern const nl_format_info nl_ulm_info;

#endif
