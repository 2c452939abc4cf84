/*
 * Reads the output of `perf script` in its default layout, with or without call chains:
 *
 *   COMM TID [CPU] SECONDS:  PERIOD EVENT: DETAILS
 *           ADDRESS SYMBOL+OFFSET (FILE)
 *
 * A sample becomes a record with the fields of nlkernel's records (doc/kernel-events.md). PROG is the thread's name;
 * other fields are TID, PID and CPU. The event name of a tracepoint is SYSTEM.EVENT, and its fields have names in
 * capitals. PERIOD is the sample's period. SYMBOL, FILE and ADDRESS describe the innermost frame. If the sample has
 * several frames, STACK is "outermost;...;innermost".
 *
 * Times count from the system boot (see import_about).
 */
#include "config.h"

#include "base/text.h"
#include "convert/builder.h"
#include "convert/kernel_text.h"
#include "convert/lines.h"

typedef struct perf_reader {
    importer base;
    builder builder;
    nl_buffer stack;
    nl_string frames[128]; /* symbols of a call chain, from the innermost frame to the outermost */
    size_t frame_count;
} perf_reader;

typedef struct perf_head {
    nl_string comm, pid, tid, cpu, period, event;
    int64_t time_ns; /* time by perf's clock */
    nl_string rest;
} perf_head;

/* ---- heads ---- */

/*
 * Reads the number of a thread or process. perf prints -1 if the number is unknown. Returns false if the text has
 * another form.
 */
static bool perf_read_id(nl_string *text, nl_string *id)
{
    const char *start = text->data;
    bool negative = text_take(text, "-");
    if (!text_digits(text, id))
        return false;
    *id = (nl_string){start, id->size + negative};
    return true;
}

/* Reads the numbers, CPU and time after the name. Returns false if the text has another form. */
static bool perf_read_numbers(nl_string text, perf_head *h)
{
    if (!perf_read_id(&text, &h->tid))
        return false;
    h->pid = (nl_string){NULL, 0};
    if (text_take(&text, "/")) {
        h->pid = h->tid;
        if (!perf_read_id(&text, &h->tid))
            return false;
    }
    if (text.size == 0 || *text.data != ' ')
        return false;
    text_blanks(&text);
    h->cpu = (nl_string){NULL, 0};
    if (text_take(&text, "[")) {
        if (!text_digits(&text, &h->cpu) || !text_take(&text, "]"))
            return false;
        text_blanks(&text);
        while (h->cpu.size > 1 && *h->cpu.data == '0')
            text_skip(&h->cpu, 1);
    }
    h->rest = text;
    return kernel_text_time(&h->rest, &h->time_ns);
}

/*
 * Reads the head of a sample. The thread's name may have blanks and digits, so its end is the first position where
 * numbers and a time follow. Returns false if the text has another form.
 */
static bool perf_read_head(nl_string line, perf_head *h)
{
    enum { COMM_LIMIT = 64 };
    text_blanks(&line);
    for (size_t i = 1; i < line.size && i < COMM_LIMIT; i++) {
        if (line.data[i] != ' ' || i + 1 == line.size)
            continue;
        nl_string rest = {line.data + i + 1, line.size - i - 1};
        if (!perf_read_numbers(rest, h))
            continue;
        h->comm = (nl_string){line.data, i};
        text_drop_blanks(&h->comm);
        return true;
    }
    return false;
}

/* Reads "EVENT:" or "PERIOD EVENT:". Returns false if the text has another form. */
static bool perf_take_event(perf_head *h)
{
    nl_string *text = &h->rest;
    text_blanks(text);
    nl_string whole = *text;
    if (!text_digits(text, &h->period) || text->size == 0 || *text->data != ' ') {
        h->period = (nl_string){NULL, 0};
        *text = whole;
    }
    text_blanks(text);
    size_t size = 0;
    while (size < text->size && text->data[size] != ' ' && text->data[size] != '\t')
        size++;
    h->event = (nl_string){text->data, size};
    text_skip(text, size);
    text_blanks(text);
    return text_drop(&h->event, ":") && h->event.size > 0;
}

/* ---- events and fields ---- */

/* Returns whether the event is a tracepoint, SYSTEM:EVENT. In the names of other events, modifiers follow the colon. */
static bool is_tracepoint(nl_string event)
{
    const char *colon = memchr(event.data, ':', event.size);
    if (colon == NULL || memchr(event.data, '/', event.size) != NULL)
        return false;
    for (const char *at = colon + 1; at < event.data + event.size; at++)
        if (strchr("ukhGHIpPSDWeb", *at) == NULL)
            return true;
    return false;
}

/* Returns SYSTEM.EVENT for a tracepoint, and the same name for other events. */
static nl_string event_name(builder *b, nl_string event)
{
    char *text = is_tracepoint(event) ? builder_bytes(b, event.size) : NULL;
    if (text == NULL)
        return event;
    memcpy(text, event.data, event.size);
    *(char *)memchr(text, ':', event.size) = '.';
    return (nl_string){text, event.size};
}

/* ---- frames ---- */

static void perf_add(perf_reader *r, const char *name, nl_string value, sink *s)
{
    if (value.data != NULL)
        builder_add_text(&r->builder, nl_string_of(name), value, s);
}

/* A line "ADDRESS SYMBOL+0xOFFSET (FILE)". */
typedef struct perf_frame {
    nl_string address, symbol, file;
} perf_frame;

static bool perf_read_frame(nl_string text, perf_frame *f)
{
    text_blanks(&text);
    size_t size = 0;
    while (size < text.size && strchr("0123456789abcdef", text.data[size]) != NULL && text.data[size] != '\0')
        size++;
    if (size == 0 || size == text.size || text.data[size] != ' ')
        return false;
    f->address = (nl_string){text.data, size};
    text_skip(&text, size);
    text_blanks(&text);
    const char *open = text.size > 0 && text.data[text.size - 1] == ')' ? memrchr(text.data, '(', text.size) : NULL;
    f->file = open != NULL ? (nl_string){open + 1, (size_t)(text.data + text.size - open - 2)} : (nl_string){NULL, 0};
    text.size = open != NULL ? (size_t)(open - text.data) : text.size;
    text_drop_blanks(&text);
    const char *plus = text.size > 0 ? memrchr(text.data, '+', text.size) : NULL;
    if (plus != NULL && plus + 2 < text.data + text.size && plus[1] == '0' && plus[2] == 'x')
        text.size = (size_t)(plus - text.data);
    f->symbol = text;
    return true;
}

static void add_innermost(perf_reader *r, const perf_frame *f, sink *s)
{
    perf_add(r, "SYMBOL", f->symbol, s);
    perf_add(r, "FILE", f->file, s);
    perf_add(r, "ADDRESS", f->address, s);
}

static void add_stack(perf_reader *r, sink *s)
{
    nl_buffer *stack = &r->stack;
    stack->size = 0;
    for (size_t i = r->frame_count; i > 0; i--) {
        nl_buffer_append(stack, r->frames[i - 1].data, r->frames[i - 1].size);
        if (i > 1)
            nl_buffer_append(stack, ";", 1);
    }
    if (r->frame_count > 1)
        perf_add(r, "STACK", (nl_string){stack->data, stack->size}, s);
}

/* Reads the frames that follow the head of a sample, and adds their fields. */
static void perf_read_chain(perf_reader *r, text_lines *lines, sink *s)
{
    text_lines ahead = *lines;
    perf_frame f;
    r->frame_count = 0;
    while (lines_next(&ahead) && ahead.line.size > 0 && *ahead.line.data == '\t') {
        *lines = ahead;
        if (!perf_read_frame(ahead.line, &f)) {
            lines_malformed(&ahead, "expected a frame of a call chain", s);
            continue;
        }
        if (r->frame_count == 0)
            add_innermost(r, &f, s);
        if (r->frame_count < sizeof r->frames / sizeof r->frames[0])
            r->frames[r->frame_count++] = f.symbol;
    }
    add_stack(r, s);
}

/* ---- reading ---- */

static void begin_sample(perf_reader *r, const perf_head *h, sink *s)
{
    builder *b = &r->builder;
    builder_begin(b, 2 * h->rest.size + h->event.size + (1 << 12));
    kernel_text_date(b, h->time_ns, s);
    b->record->level = NL_SYSTEM;
    b->record->prog = h->comm;
    b->record->event = event_name(b, h->event);
    perf_add(r, "CPU", h->cpu, s);
    perf_add(r, "PID", h->pid, s);
    perf_add(r, "TID", h->tid, s);
    perf_add(r, "PERIOD", h->period, s);
}

static void read_sample(perf_reader *r, perf_head *h, text_lines *lines, sink *s)
{
    const text_lines first = *lines;
    perf_frame f;
    begin_sample(r, h, s);
    if (perf_read_frame(h->rest, &f) && f.file.data != NULL)
        add_innermost(r, &f, s);
    else if (h->rest.size > 0)
        kernel_text_fields(&r->builder, h->rest, s);
    perf_read_chain(r, lines, s);
    lines_put(&first, &r->builder, s);
}

static void read_samples(importer *base, const char *data, size_t size, sink *s)
{
    perf_reader *r = (perf_reader *)base;
    for (text_lines lines = lines_of(data, size); !s->stopped && lines_next(&lines);) {
        perf_head h;
        if (lines.line.size == 0 || *lines.line.data == '#')
            continue;
        if (!perf_read_head(lines.line, &h))
            lines_malformed(&lines, "expected \"COMM TID [CPU] SECONDS:\"", s);
        else if (!perf_take_event(&h))
            lines_malformed(&lines, "a sample has no event", s);
        else
            read_sample(r, &h, &lines, s);
    }
}

/* Returns the size of all samples except the last, whose frames may not have arrived yet. */
static size_t perf_cut_samples(const char *data, size_t size)
{
    for (const char *end = data + size, *newline; end > data; end = newline) {
        newline = memrchr(data, '\n', (size_t)(end - data));
        if (newline == NULL)
            return 0;
        const char *after = newline + 1;
        if (after < data + size && *after != '\t' && *after != '\n')
            return (size_t)(after - data);
    }
    return 0;
}

static void perf_close_reader(importer *base)
{
    perf_reader *r = (perf_reader *)base;
    builder_free(&r->builder);
    nl_buffer_free(&r->stack);
}

/* Returns whether the first line that is not a comment has this format. */
static bool perf_detect(const char *data, size_t size)
{
    perf_head h;
    for (text_lines lines = lines_of(data, size); lines_next(&lines);)
        if (lines.line.size > 0 && *lines.line.data != '#')
            return perf_read_head(lines.line, &h) && perf_take_event(&h);
    return false;
}

const importer_kind perf_importer = {
    .name = "perf",
    .what = "output of perf script",
    .detect = perf_detect,
    .cut = perf_cut_samples,
    .size = sizeof(perf_reader),
    .close = perf_close_reader,
    .read = read_samples,
};
