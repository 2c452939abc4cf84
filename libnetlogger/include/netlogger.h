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
 *   source.h   bytes from where records are kept
 *   decoder.h  bytes that arrive in pieces into records
 *   lines.h    where lines begin, and when each was, at the speed of memory
 *   reader.h   the consuming half: records from a file, a pipe, a growing log
 *   archive.h  a log as a file that stays: whether its end is whole
 *   encoder.h  records into bytes
 *   writer.h   records into any destination
 *   recover.h  what killed processes left behind
 *   synthesis.h  what many events mean together, and the environment of a program
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

#include <netlogger/source.h>

#include <netlogger/decoder.h>

#include <netlogger/lines.h>

#include <netlogger/reader.h>

#include <netlogger/archive.h>

#include <netlogger/encoder.h>

#include <netlogger/writer.h>

#include <netlogger/recover.h>

#include <netlogger/synthesis.h>
#undef NL_INSIDE_UMBRELLA

#endif
