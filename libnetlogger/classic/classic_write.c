/*
 * The writing functions of the classic interface. Each function converts its arguments to a record, and puts the record
 * into the calling thread's ring.
 */
#include "config.h"

#include "classic/classic.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/text.h"
#include "log/log_internal.h"
#include "log/scratch.h"
#include "base/buffer.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The arguments of a call, except its handle. */
typedef struct classic_event {
    int64_t time_ns; /* 0: now */
    const char *keyword;
    size_t name_size;     /* length of the event's name in keyword, in bytes; the rest of keyword contains fields */
    const char *constant; /* may be NULL */
    const char *format;   /* NULL: data is used instead */
    const char *data;
} classic_event;

/* ---- from text to fields ---- */

/*
 * Begins each line that read_line passes to the text decoder, which splits the text of a call into fields. The time is
 * a placeholder. The decoder adds words before the first field to the name of the event, where read_line finds them.
 */
static const char line_start[] = "DATE=20000101000000 NL.EVNT=- ";
enum { EVENT_START_SIZE = 2, NAME_SIZE = 256 };

static void classic_write_add_text(nl_scratch *s, const char *text)
{
    if (text == NULL || *text == '\0')
        return;
    nl_buffer_append_text(&s->text, text);
    nl_buffer_append(&s->text, " ", 1);
}

/* Begins a line with the fields that precede those of the format. */
static void begin_line(NL_Handle *handle, nl_scratch *s, const classic_event *event)
{
    s->text.size = 0;
    nl_buffer_append(&s->text, line_start, sizeof line_start - 1);
    classic_write_add_text(s, event->keyword + event->name_size);
    nl_classic_append_tags(handle, &s->text);
    classic_write_add_text(s, event->constant);
}

/* Appends the text that printf makes from the caller's format. Returns NL_OK, or NL_FAILED with the reason. */
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
        nl_error_set_errno("cannot print the values in this format");
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

/* Removes blanks at the end, and replaces newlines with spaces, because a record is one line. */
static void join_lines(nl_scratch *s)
{
    nl_buffer *text = &s->text;
    while (text->size > 0 && strchr(" \t\r\n", text->data[text->size - 1]) != NULL)
        text->size--;
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] == '\n')
            text->data[i] = ' ';
}

/*
 * Decodes the line's fields into the record. The text before the first field becomes the field MSG. If the line is
 * invalid, for example because of a second DATE, the whole line becomes MSG.
 */
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
    record->event = (nl_string){event->keyword, event->name_size};
    if (record->level == NL_LEVEL_NONE && record->level_text.data == NULL)
        record->level = NL_USAGE;
}

/*
 * Returns the size in bytes of the event's name: the words of keyword before the first field, or all of keyword if it
 * begins with a field.
 */
static size_t find_name_size(const char *keyword)
{
    const char *equals = strchr(keyword, '=');
    if (equals == NULL)
        return strlen(keyword);
    size_t size = (size_t)(equals - keyword);
    while (size > 0 && strchr(" \t", keyword[size - 1]) == NULL)
        size--;
    while (size > 0 && strchr(" \t", keyword[size - 1]) != NULL)
        size--;
    return size > 0 ? size : strlen(keyword);
}

/* ---- events ---- */

/*
 * Returns NL_OK if memory has not run out since nl_memory_failures had the value `failures`. Otherwise, the line or the
 * record may lack fields, so the function counts the event as lost and returns NL_FAILED.
 */
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
    begin_line(handle, s, event);
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

/*
 * Writes an event. If the format is a sequence of NAME=value pairs, takes its fields from the arguments, and decodes
 * only the text before them. Otherwise, prints and decodes the text of all fields. Returns the same values as nl_write.
 */
static nl_status classic_write_put(NL_Handle *handle, nl_scratch *s, const classic_event *event, va_list *arguments,
                                   unsigned failures)
{
    char name[NAME_SIZE];
    const char *keyword = event->keyword;
    if (event->format == NULL || (keyword[event->name_size] != '\0' && event->name_size >= sizeof name))
        return classic_write_put_text(handle, s, event, arguments, failures);
    if (keyword[event->name_size] != '\0') {
        memcpy(name, keyword, event->name_size);
        name[event->name_size] = '\0';
        keyword = name;
    }
    begin_line(handle, s, event);
    read_line(s);
    complete(s->record, event);
    if (check_memory(handle, failures) != NL_OK)
        return NL_FAILED;
    nl_status status = nl_vwrite_after(handle->log, s->record, keyword, event->format, *arguments);
    return status == NL_AGAIN ? classic_write_put_text(handle, s, event, arguments, failures) : status;
}

static int write_event(NL_Handle *handle, classic_event *event, va_list *arguments)
{
    if (handle == NULL)
        return 0;
    if (event->keyword == NULL) {
        nl_error_set(NL_ERROR_INVALID, "the keyword is NULL");
        return -1;
    }
    if (nl_scratch_used.by_classic) {
        nl_producer_refuse(handle->log);
        nl_error_set(NL_ERROR_BUSY,
                     "the event is lost: a signal handler logged it while its thread was logging another event");
        return -1;
    }
    int saved = errno;
    event->name_size = find_name_size(event->keyword);
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

static bool is_filtered(NL_Handle *handle, int level)
{
    int threshold = handle != NULL ? __atomic_load_n(&handle->level, __ATOMIC_RELAXED) : 0;
    return threshold <= 0 || level > threshold;
}

/*
 * Sets the event's time. Sets the error and returns false if sec is 0 or negative, or the time is not between 1970 and
 * 2262.
 */
static bool set_time(classic_event *event, long sec, long usec)
{
    int64_t fraction_ns;
    if (sec > 0 && !__builtin_mul_overflow((int64_t)sec, INT64_C(1000000000), &event->time_ns) &&
        !__builtin_mul_overflow((int64_t)usec, INT64_C(1000), &fraction_ns) &&
        !__builtin_add_overflow(event->time_ns, fraction_ns, &event->time_ns) && event->time_ns > 0)
        return true;
    nl_error_set(NL_ERROR_INVALID, "%ld seconds and %ld microseconds are not a valid time", sec, usec);
    return false;
}

/*
 * ---- the functions ----
 *
 * Functions with Lvl in their names compare a level with the level of the handle. Functions with GT in their names have
 * arguments for the event's time.
 */

/* Writes an event for a function that has a format. FORMAT is the function's last named parameter. */
#define WRITE_FORMATTED(CONSTANT, FORMAT, ...)                                                                         \
    do {                                                                                                               \
        classic_event event = {0, keyword, 0, CONSTANT, (FORMAT) != NULL ? (FORMAT) : "", NULL};                       \
        __VA_ARGS__                                                                                                    \
        va_list arguments;                                                                                             \
        va_start(arguments, FORMAT);                                                                                   \
        int result = write_event(handle, &event, &arguments);                                                          \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    } while (0)

/* Like WRITE_FORMATTED, for a function that has data instead of a format. */
#define WRITE_DATA(CONSTANT, DATA, ...)                                                                                \
    do {                                                                                                               \
        classic_event event = {0, keyword, 0, CONSTANT, NULL, DATA};                                                   \
        __VA_ARGS__                                                                                                    \
        return write_event(handle, &event, NULL);                                                                      \
    } while (0)

#define RETURN_IF_FILTERED                                                                                             \
    if (is_filtered(handle, lvl))                                                                                      \
        return 0;
#define SET_TIME                                                                                                       \
    if (handle != NULL && !set_time(&event, sec, usec))                                                                \
        return -1;

int NetLoggerWrite(NL_Handle *handle, const char *keyword, const char *const_fmt, const char *variable_fmt, ...)
{
    WRITE_FORMATTED(const_fmt, variable_fmt, );
}

int NetLoggerWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *const_fmt, const char *variable_fmt,
                      ...)
{
    WRITE_FORMATTED(const_fmt, variable_fmt, RETURN_IF_FILTERED);
}

int NetLoggerGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword, const char *const_fmt,
                     const char *variable_fmt, ...)
{
    WRITE_FORMATTED(const_fmt, variable_fmt, SET_TIME);
}

int NetLoggerGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword, const char *const_fmt,
                        const char *variable_fmt, ...)
{
    WRITE_FORMATTED(const_fmt, variable_fmt, RETURN_IF_FILTERED SET_TIME);
}

int NetLoggerWriteString(NL_Handle *handle, const char *keyword, const char *const_data, const char *variable_data)
{
    WRITE_DATA(const_data, variable_data, );
}

int NetLoggerWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword, const char *const_data,
                            const char *variable_data)
{
    WRITE_DATA(const_data, variable_data, RETURN_IF_FILTERED);
}

int NetLoggerGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword, const char *const_data,
                           const char *variable_data)
{
    WRITE_DATA(const_data, variable_data, SET_TIME);
}

int NetLoggerGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec, const char *keyword,
                              const char *const_data, const char *variable_data)
{
    WRITE_DATA(const_data, variable_data, RETURN_IF_FILTERED SET_TIME);
}

int NetLoggerWriteText(struct nl_log *log, const char *keyword, const char *data)
{
    NL_Handle *handle = &(NL_Handle){.log = log};
    WRITE_DATA(NULL, data, );
}

/* ---- the functions of -DOLD_API, which NetLogger.h renames ---- */

int NetLoggerOldWrite(NL_Handle *handle, const char *keyword, const char *fmt, ...)
{
    WRITE_FORMATTED(NULL, fmt, );
}

int NetLoggerOldWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *fmt, ...)
{
    WRITE_FORMATTED(NULL, fmt, RETURN_IF_FILTERED);
}

int NetLoggerOldGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword, const char *fmt, ...)
{
    WRITE_FORMATTED(NULL, fmt, SET_TIME);
}

int NetLoggerOldGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword, const char *fmt, ...)
{
    WRITE_FORMATTED(NULL, fmt, RETURN_IF_FILTERED SET_TIME);
}

int NetLoggerOldWriteString(NL_Handle *handle, const char *keyword, const char *data)
{
    WRITE_DATA(NULL, data, );
}

int NetLoggerOldWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword, const char *data)
{
    WRITE_DATA(NULL, data, RETURN_IF_FILTERED);
}

int NetLoggerOldGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword, const char *data)
{
    WRITE_DATA(NULL, data, SET_TIME);
}

int NetLoggerOldGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec, const char *keyword, const char *data)
{
    WRITE_DATA(NULL, data, RETURN_IF_FILTERED SET_TIME);
}
