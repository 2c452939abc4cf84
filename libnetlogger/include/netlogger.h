/*
 * NetLogger: timestamped events from all parts of a distributed program.
 *
 * Programs include only this header. Its parts, in reading order:
 *
 *   status.h   results of calls, and messages of failures
 *   time.h     times: int64_t nanoseconds since 1970 UTC
 *   level.h    the ten ULM levels
 *   buffer.h   growing arrays of bytes
 *   record.h   the record: one event
 *   format.h   records as lines of text
 *   filter.h   expressions that select records
 *   url.h      names of sources and destinations
 *   log.h      logging: nl_open, nl_write, nl_close
 *   event.h    NL_EVENT: typed events at the lowest cost
 *   span.h     NL_SPAN: intervals of requests, and contexts that connect them
 *   marker.h   NL_MARKER: events that a probe switches on at run time
 *   reader.h   reading records from a file, a pipe or a collector
 *   recover.h  recovery of the events of killed processes
 */
#ifndef NETLOGGER_H
#define NETLOGGER_H

/* <NetLogger.h> may have defined these; its NL_OK has the same value. */
#undef NL_OK
#undef NL_OFF

#define NL_INSIDE_UMBRELLA 1
#include <netlogger/status.h>

#include <netlogger/time.h>

#include <netlogger/level.h>

#include <netlogger/buffer.h>

#include <netlogger/record.h>

#include <netlogger/format.h>

#include <netlogger/filter.h>

#include <netlogger/url.h>

#include <netlogger/log.h>

#include <netlogger/event.h>

#include <netlogger/span.h>

#include <netlogger/marker.h>

#include <netlogger/reader.h>

#include <netlogger/recover.h>

#undef NL_INSIDE_UMBRELLA

#endif
