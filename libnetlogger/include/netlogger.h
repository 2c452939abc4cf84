/*
 * NetLogger: timestamped events from every part of a distributed program.
 *
 * This is the only header a program includes. The parts below are separate files so that each can be read by itself; in
 * reading order:
 *
 *   status.h   what a call returns, and where the words for a failure are
 *   time.h     the one time type, int64_t nanoseconds since 1970 UTC
 *   level.h    the ten ULM levels
 *   buffer.h   growing bytes
 *   record.h   one event: the type everything here produces or consumes
 *   format.h   ULM and BP text, to and from a record
 *   filter.h   which records are meant: the expressions
 *   url.h      how sources and destinations are named
 *   log.h      the producing half: nl_open, nl_write, nl_close
 *   event.h    NL_EVENT: typed events at next to no cost
 *   marker.h   NL_MARKER: dormant until a probe attaches
 *   reader.h   the consuming half: records from a file, a pipe, a growing log
 *   recover.h  what killed processes left behind
 */
#ifndef NETLOGGER_H
#define NETLOGGER_H

/* The classic interface's, when it came first; NL_OK is the same. */
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

#include <netlogger/marker.h>

#include <netlogger/reader.h>

#include <netlogger/recover.h>

#undef NL_INSIDE_UMBRELLA

#endif
