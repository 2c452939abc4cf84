/*
 * logfmt: key=value pairs, as Go programs, Heroku and Prometheus write them. doc/text-formats.md describes it.
 *
 *   time=2026-11-23T01:02:03.400000Z level=info host=a prog=b event=read msg="two words" bytes=4096
 *
 * Writing. The time is time=, ISO 8601 in UTC. Values are quoted as in ULM, but a control byte is written \u00HH, which
 * every reader of logfmt knows.
 *
 * Reading. A pair is KEY=VALUE, without blanks; a value in double quotes has the escapes of Go. A word without '=' is a
 * key whose value is "true". The time is in time=, ts= or t=, ISO 8601 or seconds since 1970 of ten digits, with or
 * without a fraction. A line of Heroku has it before the first pair, followed by the program and ':'. A pair with the
 * name of a time whose value is none is a pair like any other. What is no logfmt in a line becomes a value, so that no
 * byte is lost: the rest of the line after a quote that nothing closes, and a word that cannot be a key.
 */
#ifndef NETLOGGER_FORMAT_LOGFMT_H
#define NETLOGGER_FORMAT_LOGFMT_H

#include "record/text.h"

/*
 * Whether a line that has ts= is logfmt instead of BP. logfmt of Go programs has a caller= or a msg=, and no event=,
 * which BP requires.
 */
bool nl_logfmt_claims_ts(const char *line, const char *end);

extern const nl_text_format nl_logfmt;
extern const nl_format_info nl_logfmt_info;

#endif
