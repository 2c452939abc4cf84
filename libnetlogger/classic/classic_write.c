/* The classic calls that write: what they bring becomes a record, and goes into the ring of the calling thread. */
#include "config.h"

#include "classic/classic.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/text.h"
#include "log/log_internal.h"
#include "log/scratch.h"
#include "base/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a call brings, beside its handle. */
typedef struct classic_event {
    int64_t time_ns; /* 0: now */
    const char *keyword;
    const char *constant; /* may be NULL */
    const char *format;   /* NULL when there is data instead */
    const char *data;
} classic_event;

/* ---- text into fields ---- */

/*
 * A line is begun that the text decoder reads, so that its rules for fields hold here. The time is a place holder;
 * words before the first field of what follows are read as more of the event's name, which is where they are found
 * then.
 */
static const char line_start[] = "DATE=20000101000000 NL.EVNT=- ";
enum { EVENT_START_SIZE = 2 };

static void begin_line(nl_scratch *s)
{
    s->text.size = 0;
    nl_buffer_append(&s->text, line_start, sizeof line_start - 1);
}

static void classic_write_add_text(nl_scratch *s, const char *text)
{
    if (text == NULL || *text == '\0')
        return;
    nl_buffer_append(&s->text, text, strlen(text));
    nl_buffer_append(&s->text, " ", 1);
}

/* Appends what printf makes of it: the caller's format, which is checked nowhere, as it never was. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static nl_status add_printed(nl_scratch *s, const char *format, va_list *arguments)
{
    va_list sized, printed;
    va_copy(sized, *arguments);
    va_copy(printed, *arguments);
    nl_buffer *text = &s->text;
    nl_status status = NL_FAILED;
    int size = vsnprintf(NULL, 0, format, sized);
    if (size < 0) {
        nl_error_set_errno("the format cannot be printed");
    } else {
        status = nl_buffer_reserve(text, (size_t)size + 1) ? NL_OK : NL_FAILED;
        if (status == NL_OK) {
            vsnprintf(text->data + text->size, (size_t)size + 1, format, printed);
            text->size += (size_t)size;
        }
    }
    va_end(sized);
    va_end(printed);
    return status;
}
#pragma GCC diagnostic pop

/* A line cannot have more than one line. */
static void join_lines(nl_scratch *s)
{
    nl_buffer *text = &s->text;
    while (text->size > 0 && strchr(" \t\r\n", text->data[text->size - 1]) != NULL)
        text->size--;
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] == '\n')
            text->data[i] = ' ';
}

/* The line's fields into the record; all of it into one field where it cannot be read, such as with a second DATE. */
static void read_line(nl_scratch *s)
{
    nl_record *record = s->record;
    join_lines(s);
    const char *start = s->text.data, *end = start + s->text.size;
    const size_t skipped = sizeof line_start - 1;
    size_t used;
    nl_record_clear(record);
    if (s->text.size <= skipped)
        return;
    nl_string message = {0};
    if (nl_text_decode(&nl_ulm, record, NL_FRACTION_DECIMAL, start, end, end, &used) == NL_OK) {
        message = record->event;
        message.data += EVENT_START_SIZE;
        message.size = message.size > EVENT_START_SIZE ? message.size - EVENT_START_SIZE : 0;
    } else {
        nl_record_clear(record);
        message = (nl_string){start + skipped, (size_t)(end - start) - skipped};
    }
    if (message.size > 0)
        nl_record_add_string(record, "MSG", message.data, message.size);
    record->raw = (nl_string){0};
}

static void complete(nl_record *record, const classic_event *event)
{
    record->time_ns = event->time_ns;
    record->event = (nl_string){event->keyword, strlen(event->keyword)};
    if (record->level == NL_LEVEL_NONE && record->level_text.data == NULL)
        record->level = NL_USAGE;
}

/* ---- an event ---- */

/* When memory ran out, the line or the record may lack fields: it is lost, and counted. */
static nl_status check_memory(NL_Handle *handle, unsigned failures)
{
    if (nl_memory_failures == failures)
        return NL_OK;
    nl_producer_lose(handle->log);
    return nl_error_set(NL_ERROR_MEMORY, "out of memory");
}

static nl_status classic_write_put_text(NL_Handle *handle, nl_scratch *s, const classic_event *event,
                                        va_list *arguments, unsigned failures)
{
    begin_line(s);
    nl_classic_append_tags(handle, &s->text);
    classic_write_add_text(s, event->constant);
    classic_write_add_text(s, event->data);
    if (event->format != NULL && add_printed(s, event->format, arguments) != NL_OK) {
        check_memory(handle, failures);
        return NL_FAILED;
    }
    read_line(s);
    complete(s->record, event);
    if (check_memory(handle, failures) != NL_OK)
        return NL_FAILED;
    return nl_write_record(handle->log, s->record);
}

/* By the format's fields where it has them; what goes before them is read from its text. */
static nl_status classic_write_put(NL_Handle *handle, nl_scratch *s, const classic_event *event, va_list *arguments,
                                   unsigned failures)
{
    if (event->format == NULL)
        return classic_write_put_text(handle, s, event, arguments, failures);
    begin_line(s);
    nl_classic_append_tags(handle, &s->text);
    classic_write_add_text(s, event->constant);
    read_line(s);
    complete(s->record, event);
    if (check_memory(handle, failures) != NL_OK)
        return NL_FAILED;
    nl_status status = nl_vwrite_after(handle->log, s->record, event->keyword, event->format, *arguments);
    return status == NL_AGAIN ? classic_write_put_text(handle, s, event, arguments, failures) : status;
}

static int write_event(NL_Handle *handle, const classic_event *event, va_list *arguments)
{
    if (handle == NULL)
        return 0;
    if (event->keyword == NULL) {
        nl_error_set(NL_ERROR_INVALID, "the keyword is NULL");
        return -1;
    }
    if (nl_scratch_used.by_classic) {
        nl_producer_refuse(handle->log);
        nl_error_set(NL_ERROR_BUSY, "the event is lost: a signal handler wrote it in the middle of another");
        return -1;
    }
    int saved = errno;
    nl_scratch_used.by_classic = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const unsigned failures = nl_memory_failures;
    nl_scratch *s = nl_scratch_own();
    if (s != NULL && s->record == NULL)
        s->record = nl_record_new();
    bool ready = s != NULL && s->record != NULL;
    nl_status status = ready ? classic_write_put(handle, s, event, arguments, failures) : NL_FAILED;
    if (!ready)
        nl_producer_lose(handle->log);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nl_scratch_used.by_classic = false;
    errno = saved;
    return status == NL_OFF ? 0 : status == NL_FAILED ? -1 : 1;
}

static int write_formatted(NL_Handle *handle, int64_t time_ns, const char *keyword, const char *constant,
                           const char *format, va_list *arguments)
{
    classic_event event = {time_ns, keyword, constant, format != NULL ? format : "", NULL};
    return write_event(handle, &event, arguments);
}

static int write_data(NL_Handle *handle, int64_t time_ns, const char *keyword, const char *constant, const char *data)
{
    classic_event event = {time_ns, keyword, constant, NULL, data};
    return write_event(handle, &event, NULL);
}

static bool is_filtered(NL_Handle *handle, int level)
{
    int threshold = handle != NULL ? __atomic_load_n(&handle->level, __ATOMIC_RELAXED) : 0;
    return threshold <= 0 || level > threshold;
}

/* Nanoseconds since 1970; 0 with the reason when the time is not after that, or beyond 2262. */
static int64_t time_of(long sec, long usec)
{
    int64_t time_ns;
    int64_t fraction_ns;
    if (sec > 0 && !__builtin_mul_overflow((int64_t)sec, INT64_C(1000000000), &time_ns) &&
        !__builtin_mul_overflow((int64_t)usec, INT64_C(1000), &fraction_ns) &&
        !__builtin_add_overflow(time_ns, fraction_ns, &time_ns) && time_ns > 0)
        return time_ns;
    nl_error_set(NL_ERROR_INVALID, "%ld seconds and %ld microseconds are no time of an event", sec, usec);
    return 0;
}

/* ---- the calls ---- */

int NetLoggerWrite(NL_Handle *handle, const char *keyword, const char *const_fmt, const char *variable_fmt, ...)
{
    va_list arguments;
    va_start(arguments, variable_fmt);
    int result = write_formatted(handle, 0, keyword, const_fmt, variable_fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword, const char *const_fmt,
                     const char *variable_fmt, ...)
{
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    va_list arguments;
    va_start(arguments, variable_fmt);
    int result = write_formatted(handle, time_ns, keyword, const_fmt, variable_fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *const_fmt, const char *variable_fmt,
                      ...)
{
    if (is_filtered(handle, lvl))
        return 0;
    va_list arguments;
    va_start(arguments, variable_fmt);
    int result = write_formatted(handle, 0, keyword, const_fmt, variable_fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword, const char *const_fmt,
                        const char *variable_fmt, ...)
{
    if (is_filtered(handle, lvl))
        return 0;
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    va_list arguments;
    va_start(arguments, variable_fmt);
    int result = write_formatted(handle, time_ns, keyword, const_fmt, variable_fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerWriteString(NL_Handle *handle, const char *keyword, const char *const_data, const char *variable_data)
{
    return write_data(handle, 0, keyword, const_data, variable_data);
}

int NetLoggerWriteText(struct nl_log *log, const char *keyword, const char *data)
{
    return write_data(&(NL_Handle){.log = log}, 0, keyword, NULL, data);
}

int NetLoggerWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword, const char *const_data,
                            const char *variable_data)
{
    if (is_filtered(handle, lvl))
        return 0;
    return write_data(handle, 0, keyword, const_data, variable_data);
}

int NetLoggerGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword, const char *const_data,
                           const char *variable_data)
{
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    return write_data(handle, time_ns, keyword, const_data, variable_data);
}

int NetLoggerGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec, const char *keyword,
                              const char *const_data, const char *variable_data)
{
    if (is_filtered(handle, lvl))
        return 0;
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    return write_data(handle, time_ns, keyword, const_data, variable_data);
}

/* ---- those of -DOLD_API: NetLogger.h gives them the names above ---- */

int NetLoggerOldWrite(NL_Handle *handle, const char *keyword, const char *fmt, ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    int result = write_formatted(handle, 0, keyword, NULL, fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerOldGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword, const char *fmt, ...)
{
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    va_list arguments;
    va_start(arguments, fmt);
    int result = write_formatted(handle, time_ns, keyword, NULL, fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerOldWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *fmt, ...)
{
    if (is_filtered(handle, lvl))
        return 0;
    va_list arguments;
    va_start(arguments, fmt);
    int result = write_formatted(handle, 0, keyword, NULL, fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerOldGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword, const char *fmt, ...)
{
    if (is_filtered(handle, lvl))
        return 0;
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    va_list arguments;
    va_start(arguments, fmt);
    int result = write_formatted(handle, time_ns, keyword, NULL, fmt, &arguments);
    va_end(arguments);
    return result;
}

int NetLoggerOldWriteString(NL_Handle *handle, const char *keyword, const char *data)
{
    return write_data(handle, 0, keyword, NULL, data);
}

int NetLoggerOldWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword, const char *data)
{
    if (is_filtered(handle, lvl))
        return 0;
    return write_data(handle, 0, keyword, NULL, data);
}

int NetLoggerOldGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword, const char *data)
{
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    return write_data(handle, time_ns, keyword, NULL, data);
}

int NetLoggerOldGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec, const char *keyword, const char *data)
{
    if (is_filtered(handle, lvl))
        return 0;
    int64_t time_ns = handle != NULL ? time_of(sec, usec) : 1;
    if (time_ns == 0)
        return -1;
    return write_data(handle, time_ns, keyword, NULL, data);
}
