#include "config.h"

#include "trace_dat.h"

#include "base/error.h"
#include "base/memory.h"
#include "convert.h"
#include "kallsyms.h"
#include "page.h"
#include "base/buffer.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static const char magic[] = "\x17\x08\x44tracing";

/* UNPACKED_MAX: maximum size of a decompressed section or chunk in bytes. EVENT_IDS: number of event IDs. */
enum { UNPACKED_MAX = 1 << 30, EVENT_IDS = 65536 };

/* Options and section flags of version 7. In version 6, the module reads only OPTION_DONE and OPTION_BUFFER. */
enum {
    OPTION_DONE = 0,
    OPTION_BUFFER = 3,
    OPTION_HEADER_INFO = 16,
    OPTION_FTRACE_EVENTS = 17,
    OPTION_KALLSYMS = 19,
    SECTION_COMPRESSED = 1,
};

/* The unread bytes. A read of more bytes than remain sets `bad`. */
typedef struct bytes {
    const char *at, *end;
    bool bad;
} bytes;

typedef struct trace_dat {
    calls *calls;
    const nl_filter *where;
    bytes file;
    const char *start;
    bool packed; /* some sections are compressed with zstd */
    size_t page_size;
    page_layout layout;
    kallsyms *symbols;
    kernel_event *events; /* indexed by ID; contains only the events of the function tracers */
    nl_record *record;
    nl_buffer unpacked; /* the current section or chunk, decompressed */
} trace_dat;

/* ---- bytes ---- */

static const char *trace_dat_take(bytes *b, uint64_t size)
{
    if (b->bad || size > (uint64_t)(b->end - b->at)) {
        b->bad = true;
        return NULL;
    }
    b->at += size;
    return b->at - size;
}

static uint64_t trace_dat_read_number(bytes *b, size_t size)
{
    uint64_t number = 0;
    const char *at = trace_dat_take(b, size);
    if (at != NULL)
        memcpy(&number, at, size);
    return number;
}

/* Reads a NUL-terminated text. If the text is incomplete, returns "" and sets `bad`. */
static const char *trace_dat_read_text(bytes *b)
{
    const char *nul = b->bad ? NULL : memchr(b->at, '\0', (size_t)(b->end - b->at));
    const char *text = nul != NULL ? trace_dat_take(b, (uint64_t)(nul - b->at) + 1) : NULL;
    b->bad = text == NULL;
    return text != NULL ? text : "";
}

/* Reads a size, which is a number of number_size bytes, and returns the `size` bytes after it. */
static bytes trace_dat_read_sized(bytes *b, size_t number_size)
{
    uint64_t size = trace_dat_read_number(b, number_size);
    const char *at = trace_dat_take(b, size);
    return at != NULL ? (bytes){at, at + size, false} : (bytes){NULL, NULL, true};
}

static bool trace_dat_read_word(bytes *b, const char *word, size_t size)
{
    const char *at = trace_dat_take(b, size);
    b->bad = at == NULL || memcmp(at, word, size) != 0;
    return !b->bad;
}

static bytes part_of(const trace_dat *t, uint64_t offset, uint64_t size)
{
    uint64_t whole = (uint64_t)(t->file.end - t->start);
    if (offset > whole || size > whole - offset)
        return (bytes){NULL, NULL, true};
    return (bytes){t->start + offset, t->start + offset + size, false};
}

static bool fail_damaged(const char *what)
{
    return nl_error_false(NL_ERROR_INVALID, "trace.dat: invalid %s; the file is truncated or damaged", what);
}

static bool has_page_size(const trace_dat *t)
{
    enum { MIN = 64 };
    return t->page_size >= MIN || fail_damaged("page size");
}

static bool has_layout(const trace_dat *t)
{
    return t->layout.data_offset > 0 || fail_damaged("description of pages");
}

/* ---- descriptions of events ---- */

static bool read_header_page(trace_dat *t, bytes *b)
{
    bytes text = trace_dat_read_word(b, "header_page", 12) ? trace_dat_read_sized(b, 8) : (bytes){NULL, NULL, true};
    char *copy = text.bad ? NULL : strndup(text.at, (size_t)(text.end - text.at));
    bool good = copy != NULL && page_layout_read(&t->layout, copy);
    free(copy);
    if (good && trace_dat_read_word(b, "header_event", 13))
        trace_dat_read_sized(b, 8);
    return good && !b->bad ? true : fail_damaged("description of pages");
}

static void add_event(trace_dat *t, bytes text)
{
    size_t size = (size_t)(text.end - text.at);
    char *copy = nl_memory_check(strndup(text.at, size)), name[64];
    kernel_event event;
    if (sscanf(copy, "name: %63s", name) == 1 && strncmp(name, "func", 4) == 0) {
        kernel_event_name(&event, "ftrace", name);
        if (kernel_event_parse(&event, copy, strlen(copy)) && t->events[event.id].name == NULL)
            t->events[event.id] = event;
        else
            kernel_event_free(&event);
    }
    free(copy);
}

static bool read_ftrace_events(trace_dat *t, bytes *b)
{
    uint64_t count = trace_dat_read_number(b, 4);
    for (uint64_t i = 0; i < count && !b->bad; i++) {
        bytes text = trace_dat_read_sized(b, 8);
        if (!text.bad)
            add_event(t, text);
    }
    return b->bad ? fail_damaged("description of events") : true;
}

static bool read_kallsyms(trace_dat *t, bytes *b)
{
    bytes text = trace_dat_read_sized(b, 4);
    if (text.bad)
        return fail_damaged("list of symbols");
    kallsyms_free(t->symbols);
    t->symbols = kallsyms_parse(text.at, (size_t)(text.end - text.at));
    return true;
}

/* ---- pages ---- */

static void trace_dat_take_event(trace_dat *t, uint64_t cpu, const page_event *raw)
{
    uint16_t id;
    int32_t tid;
    if (raw->size < 8)
        return;
    memcpy(&id, raw->data, sizeof id);
    memcpy(&tid, raw->data + 4, sizeof tid);
    kernel_event *event = &t->events[id];
    if (event->name == NULL || raw->size < event->fixed_size)
        return;
    event->symbols = t->symbols;
    nl_record *record = t->record;
    nl_record_clear(record);
    nl_record_set_time(record, (int64_t)(raw->time_ns & INT64_MAX));
    record->event = nl_string_of(event->name);
    nl_record_add_int(record, "CPU", (int64_t)cpu);
    nl_record_add_int(record, "TID", tid);
    convert_fields(record, event, raw->data, raw->size);
    if (nl_filter_matches(t->where, record))
        calls_take(t->calls, record);
}

static void trace_dat_read_pages(trace_dat *t, uint64_t cpu, bytes pages)
{
    for (; pages.at < pages.end; pages.at += t->page_size) {
        size_t size = (size_t)(pages.end - pages.at);
        page_walk walk;
        page_event raw;
        if (size > t->page_size)
            size = t->page_size;
        bool any = page_begin(&walk, &t->layout, pages.at, size);
        if (walk.missed)
            calls_lose(t->calls, (int64_t)(walk.time_ns & INT64_MAX), walk.counted ? walk.missed_count : 0);
        while (any && page_next(&walk, &raw))
            trace_dat_take_event(t, cpu, &raw);
        if (size < t->page_size)
            break;
    }
}

/* Reads a compressed chunk, which begins with its compressed and decompressed sizes, and decompresses the chunk into
 * t->unpacked. Returns false on failure. */
static bool unpack(trace_dat *t, bytes *b)
{
    uint64_t size = trace_dat_read_number(b, 4), whole = trace_dat_read_number(b, 4);
    const char *at = trace_dat_take(b, size);
    if (at == NULL || whole > UNPACKED_MAX)
        return false;
    nl_buffer *out = &t->unpacked;
    out->size = 0;
    nl_buffer_reserve(out, whole + 1);
    size_t got = ZSTD_decompress(out->data, whole, at, size);
    out->size = ZSTD_isError(got) ? 0 : got;
    return !ZSTD_isError(got); /* the last chunk may be shorter than declared */
}

static bool trace_dat_read_cpu(trace_dat *t, uint64_t cpu, bytes data)
{
    if (!t->packed || data.at == data.end) {
        trace_dat_read_pages(t, cpu, data);
        return true;
    }
    data.end = t->file.end; /* read to the end of the file, because the declared size does not include the number of
                               chunks, and each chunk has a size */
    uint64_t count = trace_dat_read_number(&data, 4);
    for (uint64_t i = 0; i < count; i++) {
        if (!unpack(t, &data))
            return fail_damaged("compressed trace data");
        trace_dat_read_pages(t, cpu, (bytes){t->unpacked.data, t->unpacked.data + t->unpacked.size, false});
    }
    return !data.bad || fail_damaged("compressed trace data");
}

/* ---- version 6 ---- */

static bool skip_event_formats(bytes *b)
{
    uint64_t systems = trace_dat_read_number(b, 4);
    for (uint64_t i = 0; i < systems && !b->bad; i++) {
        trace_dat_read_text(b);
        uint64_t count = trace_dat_read_number(b, 4);
        for (uint64_t j = 0; j < count && !b->bad; j++)
            trace_dat_read_sized(b, 8);
    }
    return !b->bad;
}

/* Reads the table with the offset and size of each CPU's buffer, and the buffers. Returns false and sets the error if
 * the table or a buffer is damaged. */
static bool trace_dat_read_cpus_6(trace_dat *t, bytes *b, uint64_t cpus)
{
    for (uint64_t cpu = 0; cpu < cpus && !b->bad; cpu++) {
        uint64_t offset = trace_dat_read_number(b, 8), size = trace_dat_read_number(b, 8);
        bytes data = part_of(t, offset, b->bad ? 0 : size);
        if (data.bad)
            return fail_damaged("CPU's trace data");
        trace_dat_read_pages(t, cpu, data);
    }
    return b->bad ? fail_damaged("table of CPUs") : true;
}

static bool trace_dat_read_buffer_6(trace_dat *t, bytes option, uint64_t cpus)
{
    uint64_t offset = trace_dat_read_number(&option, 8);
    if (option.bad)
        return fail_damaged("options");
    bytes data = part_of(t, offset, 0);
    data.end = t->file.end;
    if (data.bad)
        return fail_damaged("options");
    return trace_dat_read_word(&data, "flyrecord", 10) ? trace_dat_read_cpus_6(t, &data, cpus) : true;
}

static bool read_6(trace_dat *t, bytes *b)
{
    t->page_size = (size_t)trace_dat_read_number(b, 4);
    if (!has_page_size(t) || !read_header_page(t, b) || !read_ftrace_events(t, b))
        return false;
    if (!skip_event_formats(b))
        return fail_damaged("description of events");
    if (!read_kallsyms(t, b))
        return false;
    trace_dat_read_sized(b, 4);
    trace_dat_read_sized(b, 8);
    uint64_t cpus = trace_dat_read_number(b, 4);
    const char *kind = trace_dat_take(b, 10);
    if (kind != NULL && memcmp(kind, "options  ", 10) == 0) {
        for (uint64_t id; (id = trace_dat_read_number(b, 2)) != OPTION_DONE && !b->bad;) {
            bytes option = trace_dat_read_sized(b, 4);
            if (!option.bad && id == OPTION_BUFFER && !trace_dat_read_buffer_6(t, option, cpus))
                return false;
        }
        kind = trace_dat_take(b, 10);
    }
    if (kind == NULL)
        return fail_damaged("header");
    if (memcmp(kind, "flyrecord", 10) != 0) {
        return nl_error_false(NL_ERROR_UNSUPPORTED,
                              "trace.dat: the file has the output of a latency tracer, but no calls");
    }
    return trace_dat_read_cpus_6(t, b, cpus);
}

/* ---- version 7 ---- */

/*
 * Returns the content of the section at an offset, decompressed. Sets `bad` in the result if the section's ID is not
 * `expected`, or if the section is damaged.
 */
static bytes section_at(trace_dat *t, uint64_t offset, unsigned expected)
{
    bytes head = part_of(t, offset, 16);
    uint64_t id = trace_dat_read_number(&head, 2), flags = trace_dat_read_number(&head, 2);
    trace_dat_read_number(&head, 4);
    uint64_t size = trace_dat_read_number(&head, 8);
    bytes section = head.bad ? head : part_of(t, offset + 16, size);
    section.bad = section.bad || id != expected;
    if (section.bad || !(flags & SECTION_COMPRESSED))
        return section;
    if (!unpack(t, &section))
        return (bytes){NULL, NULL, true};
    return (bytes){t->unpacked.data, t->unpacked.data + t->unpacked.size, false};
}

static bool trace_dat_read_buffer_7(trace_dat *t, bytes option)
{
    trace_dat_read_number(&option, 8);
    trace_dat_read_text(&option);
    trace_dat_read_text(&option);
    t->page_size = (size_t)trace_dat_read_number(&option, 4);
    uint64_t cpus = trace_dat_read_number(&option, 4);
    if (!has_page_size(t) || !has_layout(t))
        return false;
    for (uint64_t i = 0; i < cpus && !option.bad; i++) {
        uint64_t cpu = trace_dat_read_number(&option, 4), offset = trace_dat_read_number(&option, 8),
                 size = trace_dat_read_number(&option, 8);
        bytes data = part_of(t, offset, option.bad ? 0 : size);
        if (data.bad)
            return fail_damaged("CPU's trace data");
        if (!trace_dat_read_cpu(t, cpu, data))
            return false;
    }
    return option.bad ? fail_damaged("table of CPUs") : true;
}

static bool trace_dat_read_option_7(trace_dat *t, uint64_t id, bytes option, bool buffers)
{
    if (id == OPTION_BUFFER)
        return !buffers || trace_dat_read_buffer_7(t, option);
    if (buffers || (id != OPTION_HEADER_INFO && id != OPTION_FTRACE_EVENTS && id != OPTION_KALLSYMS))
        return true;
    bytes section = section_at(t, trace_dat_read_number(&option, 8), (unsigned)id);
    if (option.bad || section.bad)
        return fail_damaged("section");
    if (id == OPTION_HEADER_INFO)
        return read_header_page(t, &section);
    return id == OPTION_FTRACE_EVENTS ? read_ftrace_events(t, &section) : read_kallsyms(t, &section);
}

/* Reads the options with descriptions, or the options with buffers if `buffers` is true. The caller reads the
 * descriptions first, because the buffers depend on them. Returns false and sets the error on failure. */
static bool trace_dat_read_options_7(trace_dat *t, uint64_t offset, bool buffers)
{
    enum { SECTIONS_MAX = 1000 };
    nl_buffer copy = {0};
    bool good = true;
    for (int sections = 0; good && offset != 0 && sections < SECTIONS_MAX; sections++) {
        bytes section = section_at(t, offset, 0);
        if (section.bad) {
            good = fail_damaged("section of options");
            break;
        }
        copy.size = 0; /* keep a copy of the options, because reading their sections overwrites this buffer */
        nl_buffer_append(&copy, section.at, (size_t)(section.end - section.at));
        if (copy.size == 0)
            break;
        bytes options = {copy.data, copy.data + copy.size, false};
        offset = 0;
        while (good && options.at < options.end) {
            uint64_t id = trace_dat_read_number(&options, 2);
            bytes option = trace_dat_read_sized(&options, 4);
            if (option.bad) {
                good = fail_damaged("option");
            } else if (id == OPTION_DONE) {
                offset = trace_dat_read_number(&option, 8);
                break;
            } else {
                good = trace_dat_read_option_7(t, id, option, buffers);
            }
        }
    }
    nl_buffer_free(&copy);
    return good;
}

static bool read_7(trace_dat *t, bytes *b)
{
    t->page_size = (size_t)trace_dat_read_number(b, 4);
    const char *packer = trace_dat_read_text(b);
    trace_dat_read_text(b);
    uint64_t options = trace_dat_read_number(b, 8);
    if (b->bad)
        return fail_damaged("header");
    t->packed = strcmp(packer, "none") != 0;
    if (t->packed && strcmp(packer, "zstd") != 0) {
        return nl_error_false(NL_ERROR_UNSUPPORTED,
                              "trace.dat: unsupported compression %s; use trace-cmd convert --compression zstd",
                              packer);
    }
    return trace_dat_read_options_7(t, options, false) && trace_dat_read_options_7(t, options, true);
}

/* ---- the file ---- */

bool trace_dat_detect(const char *data, size_t size)
{
    return size >= TRACE_DAT_MAGIC_SIZE && memcmp(data, magic, TRACE_DAT_MAGIC_SIZE) == 0;
}

bool trace_dat_read(calls *c, const nl_filter *where, const char *data, size_t size)
{
    trace_dat t = {
        .calls = c, .where = where, .start = data, .file = {data + TRACE_DAT_MAGIC_SIZE, data + size, false}};
    bytes *b = &t.file;
    const char *version = trace_dat_read_text(b);
    unsigned endian = (unsigned)trace_dat_read_number(b, 1);
    trace_dat_read_number(b, 1);
    if (b->bad)
        return fail_damaged("header");
    if (endian != 0 || (strcmp(version, "6") != 0 && strcmp(version, "7") != 0)) {
        return nl_error_false(NL_ERROR_UNSUPPORTED,
                              "trace.dat: unsupported %s; convert the file to text with trace-cmd report",
                              endian != 0 ? "byte order" : "version");
    }
    t.events = nl_memory_check(calloc(EVENT_IDS, sizeof *t.events));
    t.record = nl_record_new();
    bool good = version[0] == '6' ? read_6(&t, b) : read_7(&t, b);
    for (size_t i = 0; i < EVENT_IDS; i++)
        if (t.events[i].name != NULL)
            kernel_event_free(&t.events[i]);
    free(t.events);
    nl_record_free(t.record);
    kallsyms_free(t.symbols);
    nl_buffer_free(&t.unpacked);
    return good;
}
