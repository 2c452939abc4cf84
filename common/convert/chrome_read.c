/*
 * Reads Chrome trace format (JSON): {"traceEvents":[...]} or [...].
 *
 * In nlconv's own traces, the args of the instant events are the records, and the reader ignores other events. Each
 * event of another program's trace becomes a record. Its time is ts, its event name is name, and its fields are ph,
 * cat, pid, tid, id, dur and the args. Its program is the name of the process, which the metadata event (ph M)
 * process_name contains. The reader ignores other metadata. Some programs write the metadata at the end. Therefore, the
 * reader holds the events from the first event of an unnamed process on, until all of these events' processes have
 * names, or the input ends. If HELD_MAX bytes are held, or a growing input has no more data at present, the reader
 * converts the held events and holds no more events.
 */
#include "config.h"

#include "base/error.h"
#include "base/text.h"
#include "convert/json_fields.h"

#include <glib.h>
#include <string.h>

enum {
    PROCESSES_MAX = 1 << 16, /* maximum number of processes whose names the reader keeps */
    HELD_MAX = 64 << 20,
    UNNAMED_SIZE = 64, /* approximate size in bytes of the number of a process without a name */
};

/* An event that waits for the name of a process. */
typedef struct held_event {
    uint64_t line; /* number of the event's line in the input */
    size_t size;   /* size of its text in bytes */
} held_event;

typedef struct chrome_reader {
    importer base;
    builder builder;
    json_fields fields;
    GHashTable *processes; /* maps the JSON text of a pid to the process's name */
    GArray *held;          /* held_event */
    GString *held_text;    /* the texts of these events */
    GHashTable *unnamed;   /* a set of the JSON texts of the pids in held events whose processes have no names yet */
    bool holds_no_more;
    bool ended; /* the array has ended */
} chrome_reader;

static void chrome_read_open_reader(importer *base)
{
    chrome_reader *r = (chrome_reader *)base;
    r->processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    r->unnamed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r->held = g_array_new(FALSE, FALSE, sizeof(held_event));
    r->held_text = g_string_new(NULL);
}

static void chrome_read_close_reader(importer *base)
{
    chrome_reader *r = (chrome_reader *)base;
    builder_free(&r->builder);
    g_hash_table_destroy(r->processes);
    g_hash_table_destroy(r->unnamed);
    g_array_free(r->held, TRUE);
    g_string_free(r->held_text, TRUE);
}

/* Returns the end of the object or array at `at`, or NULL if it is not complete. */
static const char *balanced_end(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++)
                at += *at == '\\';
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (--depth <= 0)
                return at + 1;
        }
    }
    return NULL;
}

/* Returns the size of the whole events. If the array ends in the data, returns the size of all bytes. */
static size_t chrome_cut_events(const char *data, size_t size)
{
    const char *at = data, *end = data + size, *whole = data;
    while (at < end) {
        if (*at == ']')
            return size;
        if (*at == '{') {
            at = balanced_end(at, end);
            if (at == NULL)
                break;
            whole = at;
        } else {
            at++;
        }
    }
    return (size_t)(whole - data);
}

/* Returns the position after the [ that begins the array of events, or NULL if the data has no such array. */
static const char *find_array(const char *data, const char *end)
{
    static const char name[] = "\"traceEvents\"";
    json_scan j = {.at = data, .end = end};
    if (json_take(&j, '['))
        return j.at;
    const char *found = memmem(data, (size_t)(end - data), name, sizeof name - 1);
    if (found == NULL)
        return NULL;
    j.at = found + sizeof name - 1;
    return json_take(&j, ':') && json_take(&j, '[') ? j.at : NULL;
}

static size_t read_head(const char *data, size_t size, bool all, void **shared, sink *s)
{
    static char found;
    const char *array = find_array(data, data + size);
    if (array == NULL && !all)
        return 0;
    *shared = &found;
    if (array == NULL && size > 0)
        sink_malformed(s, 1, 0, "no traceEvents array", data, size < 100 ? size : 100);
    return array != NULL ? (size_t)(array - data) : size;
}

static void chrome_unshare(void *shared)
{
    (void)shared;
}

enum { PHASE, CATEGORY, TIME, NAME, ARGS, DURATION, PID, TID, ID, MEMBER_COUNT };
static const char *const member_names[MEMBER_COUNT] = {"ph", "cat", "ts", "name", "args", "dur", "pid", "tid", "id"};

static bool pick(json_fields *f, nl_string members[MEMBER_COUNT])
{
    json_scan *j = &f->scan;
    bool first = true;
    nl_string key, value;
    if (!json_take(j, '{'))
        return json_fail(j, "expected an object");
    while (json_next(j, '}', &first) && json_key(j, &key) && json_any(j, &value))
        for (int i = 0; i < MEMBER_COUNT; i++)
            if (nl_string_is(key, member_names[i]))
                members[i] = value;
    return j->error == NULL;
}

/*
 * Converts microseconds with a fraction to nanoseconds. Ignores digits beyond nanoseconds. Returns false if the text is
 * not a number or does not fit.
 */
static bool read_time(nl_string text, int64_t *time_ns)
{
    const char *at = text.data, *end = at + text.size;
    bool negative = at < end && *at == '-';
    uint64_t ns = 0;
    int decimals = -1;
    if (memchr(text.data, 'e', text.size) != NULL || memchr(text.data, 'E', text.size) != NULL) {
        nl_field number = {.type = NL_TYPE_STRING, .string = text};
        double us;
        if (!nl_field_double(&number, &us) || !(us > -9e15 && us < 9e15))
            return false;
        *time_ns = (int64_t)(us * 1000);
        return true;
    }
    for (at += negative; at < end; at++) {
        if (*at == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (*at < '0' || *at > '9')
            return false;
        if (decimals == 3)
            continue;
        decimals += decimals >= 0;
        if (__builtin_mul_overflow(ns, 10, &ns) || __builtin_add_overflow(ns, (uint64_t)(*at - '0'), &ns))
            return false;
    }
    for (decimals = decimals < 0 ? 0 : decimals; decimals < 3; decimals++)
        if (__builtin_mul_overflow(ns, 10, &ns))
            return false;
    if (ns > INT64_MAX)
        return false;
    *time_ns = negative ? -(int64_t)ns : (int64_t)ns;
    return text.size > (size_t)negative;
}

/* Limits the scan to the bytes of value. */
static void enter(json_fields *f, nl_string value)
{
    f->scan.at = value.data;
    f->scan.end = value.data + value.size;
}

/* Returns the JSON text of an event's pid. The caller frees the text with g_free. */
static char *pid_text(const nl_string members[MEMBER_COUNT])
{
    return g_strndup(members[PID].data, members[PID].size);
}

/* Keeps the name of the process if an event of metadata names one. Returns false on failure. */
static bool chrome_read_metadata(chrome_reader *r, const nl_string members[MEMBER_COUNT])
{
    json_scan *j = &r->fields.scan;
    nl_string key, value;
    bool first = true;
    if (members[NAME].data == NULL || !nl_string_is(members[NAME], "\"process_name\"") || members[PID].data == NULL ||
        members[ARGS].data == NULL || members[ARGS].data[0] != '{')
        return true;
    enter(&r->fields, members[ARGS]);
    if (!json_take(j, '{'))
        return json_fail(j, "expected an object");
    while (json_next(j, '}', &first) && json_key(j, &key)) {
        if (!nl_string_is(key, "name") || json_peek(j) != '"') {
            if (!json_any(j, &value))
                return false;
            continue;
        }
        if (!json_string(j, &value))
            return false;
        char *pid = pid_text(members);
        g_hash_table_remove(r->unnamed, pid);
        if (value.size > 0 && g_hash_table_size(r->processes) < PROCESSES_MAX)
            g_hash_table_replace(r->processes, g_strdup(pid), g_strndup(value.data, value.size));
        g_free(pid);
    }
    return j->error == NULL;
}

/* Sets the program of a record to the name of its process, if this name is known. */
static void set_program(const chrome_reader *r, const nl_string members[MEMBER_COUNT])
{
    if (members[PID].data == NULL)
        return;
    char *pid = pid_text(members);
    const char *name = g_hash_table_lookup(r->processes, pid);
    if (name != NULL)
        builder_set(r->fields.builder, MEMBER_PROG, nl_string_of(name));
    g_free(pid);
}

static bool chrome_read_foreign(json_fields *f, const nl_string members[MEMBER_COUNT])
{
    static const int plain[] = {PHASE, CATEGORY, DURATION, PID, TID, ID};
    int64_t time_ns;
    if (members[TIME].data == NULL || !read_time(members[TIME], &time_ns))
        return json_fail(&f->scan, members[TIME].data == NULL ? "missing ts" : "invalid time");
    nl_record_set_time(f->builder->record, time_ns);
    f->builder->seen |= 1u << MEMBER_TIME;
    nl_string name;
    if (members[NAME].data != NULL && members[NAME].data[0] == '"') {
        enter(f, members[NAME]);
        if (!json_string(&f->scan, &name))
            return false;
        builder_set(f->builder, MEMBER_EVENT, name);
    }
    f->only_fields = true;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        nl_string key = {member_names[plain[i]], strlen(member_names[plain[i]])};
        if (members[plain[i]].data == NULL)
            continue;
        enter(f, members[plain[i]]);
        if (!json_take_value(f, key))
            return false;
    }
    if (members[ARGS].data == NULL || members[ARGS].data[0] != '{')
        return true;
    enter(f, members[ARGS]);
    return json_take_members(f);
}

static bool is_own(const nl_string members[MEMBER_COUNT])
{
    return members[CATEGORY].size > 10 && memcmp(members[CATEGORY].data, "\"netlogger", 10) == 0;
}

/* Converts an event that is not metadata. Returns false and sets the error of the scan on failure. */
static bool chrome_read_convert(chrome_reader *r, const nl_string members[MEMBER_COUNT])
{
    json_fields *f = &r->fields;
    if (is_own(members) && members[CATEGORY].data[10] == '.')
        return true;
    if (is_own(members) && nl_string_is(members[CATEGORY], "\"netlogger\"") && members[ARGS].data != NULL) {
        enter(f, members[ARGS]);
        if (!json_take_members(f))
            return false;
    } else if (!chrome_read_foreign(f, members)) {
        return false;
    } else {
        set_program(r, members);
    }
    return builder_finish(f->builder, true, f->s) || json_fail(&f->scan, nl_error_message());
}

/* Reports the error of the scan of an event. */
static void report_event(const chrome_reader *r, held_event event, const char *text)
{
    sink_malformed(r->fields.s, event.line - r->fields.s->lines_before, 0, r->fields.scan.error, text, event.size);
}

static void release_events(chrome_reader *r, sink *s)
{
    const char *at = r->held_text->str;
    for (guint i = 0; i < r->held->len && !s->stopped; i++) {
        const held_event event = g_array_index(r->held, held_event, i);
        nl_string members[MEMBER_COUNT] = {0};
        json_fields_begin(&r->fields, &r->builder, at, at + event.size, s);
        if (!pick(&r->fields, members) || !chrome_read_convert(r, members))
            report_event(r, event, at);
        at += event.size;
    }
    g_array_set_size(r->held, 0);
    g_string_truncate(r->held_text, 0);
    g_hash_table_remove_all(r->unnamed);
}

/*
 * If an event must wait for the name of its process, or for earlier events, holds the event and returns true. If too
 * much is held, converts all held events.
 */
static bool hold_event(chrome_reader *r, const nl_string members[MEMBER_COUNT], held_event event, const char *text)
{
    char *pid = !is_own(members) && members[PID].data != NULL ? pid_text(members) : NULL;
    const bool is_unnamed = pid != NULL && !g_hash_table_contains(r->processes, pid),
               is_held = !r->holds_no_more && (is_unnamed || r->held->len > 0);
    if (is_held) {
        g_array_append_val(r->held, event);
        g_string_append_len(r->held_text, text, (gssize)event.size);
        if (is_unnamed)
            g_hash_table_add(r->unnamed, g_steal_pointer(&pid));
    }
    g_free(pid);
    if (r->held_text->len + r->held->len * sizeof(held_event) + g_hash_table_size(r->unnamed) * UNNAMED_SIZE <=
        HELD_MAX)
        return is_held;
    r->holds_no_more = true;
    release_events(r, r->fields.s);
    return true;
}

/* Reads an event. Returns false and sets the error of the scan on failure. */
static bool chrome_read_take_event(chrome_reader *r, held_event event, const char *text)
{
    nl_string members[MEMBER_COUNT] = {0};
    if (!pick(&r->fields, members))
        return false;
    if (!nl_string_is(members[PHASE], "\"M\""))
        return hold_event(r, members, event, text) || chrome_read_convert(r, members);
    if (!chrome_read_metadata(r, members))
        return false;
    if (r->held->len > 0 && g_hash_table_size(r->unnamed) == 0)
        release_events(r, r->fields.s);
    return true;
}

/*
 * Reports malformed input. In strict reading, first converts the held events, because they come before the malformed
 * input.
 */
static void report_malformed(chrome_reader *r, sink *s, uint64_t line, uint64_t offset, const char *reason,
                             const char *text, size_t size)
{
    char *kept = g_strdup(reason); /* the conversion of events changes the scan's error */
    if (s->strict)
        release_events(r, s);
    sink_malformed(s, line, offset, kept, text, size);
    g_free(kept);
}

static void read_events(importer *base, const char *data, size_t size, sink *s)
{
    chrome_reader *r = (chrome_reader *)base;
    uint64_t line = 1;
    for (const char *at = data, *end = data + size; at < end && !r->ended && !s->stopped;) {
        if (*at == '{') {
            const char *stop = balanced_end(at, end);
            const held_event event = {s->lines_before + line, (size_t)((stop != NULL ? stop : end) - at)};
            json_fields_begin(&r->fields, &r->builder, at, at + event.size, s);
            if (stop == NULL)
                report_malformed(r, s, line, (uint64_t)(at - data), "the input ends within an event", at, event.size);
            else if (!chrome_read_take_event(r, event, at))
                report_malformed(r, s, line, 0, r->fields.scan.error, at, event.size);
            for (stop = stop != NULL ? stop : end; at < stop; at++)
                line += *at == '\n';
            continue;
        }
        r->ended = *at == ']';
        if (!r->ended && strchr(", \t\r\n", *at) == NULL) {
            const char *stop = at;
            while (stop < end && *stop != '{' && *stop != ']')
                stop++;
            report_malformed(r, s, line, (uint64_t)(at - data), "expected an event", at, (size_t)(stop - at));
            at = stop;
            continue;
        }
        line += *at++ == '\n';
    }
}

static void chrome_read_end(importer *base, sink *s)
{
    release_events((chrome_reader *)base, s);
}

static void chrome_read_pause(importer *base, sink *s)
{
    ((chrome_reader *)base)->holds_no_more = true;
    release_events((chrome_reader *)base, s);
}

static bool chrome_read_detect(const char *data, size_t size)
{
    json_scan j = {.at = data, .end = data + size};
    if (json_take(&j, '['))
        return json_take(&j, '{') || json_take(&j, ']');
    return json_peek(&j) == '{' && find_array(data, data + size) != NULL;
}

const importer_kind chrome_importer = {
    .name = "chrome",
    .what = "Chrome's trace format",
    .in_order = true,
    .detect = chrome_read_detect,
    .head = read_head,
    .unshare = chrome_unshare,
    .cut = chrome_cut_events,
    .size = sizeof(chrome_reader),
    .open = chrome_read_open_reader,
    .close = chrome_read_close_reader,
    .read = read_events,
    .end = chrome_read_end,
    .pause = chrome_read_pause,
};
