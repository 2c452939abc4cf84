/*
 * BP, the "Best Practices" format of NetLogger 4:
 *
 *   ts=2012-03-14T14:04:46.000000Z event=stampede.wf.plan level=Info dax.label=montage argv="-x 0.9 \"a b\""
 *
 * ts is an ISO 8601 time, or decimal seconds since 1970 (read digit by digit, to the nanosecond). Written in UTC with
 * Z.
 */
#ifndef NETLOGGER_FORMAT_BP_H
#define NETLOGGER_FORMAT_BP_H

#include "record/text.h"

extern const nl_text_format nl_bp;
extern const nl_format_info nl_bp_info;

#endif
