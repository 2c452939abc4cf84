/*
 * Reads the text of ftrace's trace file and the output of trace-cmd report, which is similar.
 *
 *   COMM-TID [(PID)] [CPU] FLAGS SECONDS: FUNCTION <-CALLER        the function tracer
 *   COMM-TID [(PID)] [CPU] FLAGS SECONDS: EVENT: DETAILS           events
 *   CPU) DURATION us | FUNCTION() {                                the function graph tracer
 *
 * The records have the fields of nlkernel's records (doc/kernel-events.md). A call from the function tracer is a record
 * ftrace.function with FUNCTION and CALLER. A call from the function graph tracer is a record ftrace.funcgraph_entry
 * with FUNCTION and DEPTH, and a record ftrace.funcgraph_exit with DURATION.NS. Event names have no subsystem, because
 * the text does not contain it. Times count from the system boot (see import_about).
 */
#include "config.h"

#include "convert/kernel_text.h"
#include "convert/lines.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>

enum { DEPTH_MAX = 64, NAME_MAX = 64, CPUS_MAX = 4096 };

/* The thread on a CPU, and the names of its functions that have not returned, indexed by depth. */
typedef struct graph_cpu {
    int64_t tid; /* -1 if it is unknown */
    char within[DEPTH_MAX][NAME_MAX];
} graph_cpu;

typedef struct ftrace_reader {
    importer base;
    builder builder;
    graph_cpu *cpus[CPUS_MAX];
    int64_t last_ns; /* the latest time; lines without a time get this time */
} ftrace_reader;

typedef struct trace_head {
    nl_string comm, tid, pid, cpu;
    int64_t time_ns;
    nl_string rest;
} trace_head;

/* Converts at most the first 18 digits to a number, so that the number cannot overflow. */
static int64_t ftrace_number_of(nl_string digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits.size && i < 18; i++)
        number = 10 * number + (digits.data[i] - '0');
    return number;
}

/* ---- heads ---- */

/* Reads "COMM-TID" and an optional "(PID)"; COMM may have any bytes. Returns false if the text has another form. */
static bool ftrace_read_task(nl_string text, trace_head *h)
{
    text_drop_blanks(&text);
    const char *open = text.size > 0 && text.data[text.size - 1] == ')' ? memrchr(text.data, '(', text.size) : NULL;
    h->pid = (nl_string){NULL, 0};
    if (open != NULL) {
        nl_string pid = {open + 1, (size_t)(text.data + text.size - 1 - (open + 1))};
        text_blanks(&pid);
        if (!text_digits(&pid, &h->pid))
            h->pid = (nl_string){NULL, 0}; /* (-------) */
        text.size = (size_t)(open - text.data);
        text_drop_blanks(&text);
    }
    size_t digits = 0;
    while (digits < text.size && text.data[text.size - 1 - digits] >= '0' && text.data[text.size - 1 - digits] <= '9')
        digits++;
    if (digits == 0 || digits > 10 || text.size <= digits || text.data[text.size - 1 - digits] != '-')
        return false;
    h->tid = (nl_string){text.data + text.size - digits, digits};
    h->comm = (nl_string){text.data, text.size - digits - 1};
    text_blanks(&h->comm);
    return true;
}

/* Reads "SECONDS:" after at most two other words, such as flags. Returns false if the text has another form. */
static bool ftrace_read_stamp(nl_string text, trace_head *h)
{
    for (int word = 0; word < 3; word++) {
        text_blanks(&text);
        h->rest = text;
        if (kernel_text_time(&h->rest, &h->time_ns))
            return true;
        while (text.size > 0 && *text.data != ' ')
            text_skip(&text, 1);
    }
    return false;
}

static bool ftrace_read_head(nl_string line, trace_head *h)
{
    nl_string left = line;
    for (const char *open; (open = text_find(left, " [")) != NULL;) {
        left = (nl_string){open + 2, (size_t)(line.data + line.size - (open + 2))};
        nl_string after = left;
        if (!text_digits(&after, &h->cpu) || !text_take(&after, "]"))
            continue;
        while (h->cpu.size > 1 && *h->cpu.data == '0')
            text_skip(&h->cpu, 1);
        if (ftrace_read_task((nl_string){line.data, (size_t)(open - line.data)}, h) && ftrace_read_stamp(after, h))
            return true;
    }
    return false;
}

/* ---- the function graph ---- */

/* Removes the function's name and an optional module from "tcp_v4_rcv [module](skb=..) {". Returns the name. */
/* NOLINTBEGIN(clang-analyzer-core.*): a text without data has no size */
static nl_string ftrace_read_name(nl_string *text)
{
    size_t size = 0;
    while (size < text->size && strchr("( [;", text->data[size]) == NULL)
        size++;
    nl_string name = {text->data, size};
    const char *bracket = memchr(text->data, '(', text->size);
    text_skip(text, bracket != NULL ? (size_t)(bracket - text->data) : text->size);
    return name;
}
/* NOLINTEND(clang-analyzer-core.*) */

/*
 * Converts "1.234 us", with optional marks such as + or ! before the number, to nanoseconds. Returns -1 if there is no
 * duration.
 */
static int64_t duration_of(nl_string text)
{
    const char *unit = text_find(text, " us");
    if (unit == NULL)
        return -1;
    const char *from = unit;
    while (from > text.data && ((from[-1] >= '0' && from[-1] <= '9') || from[-1] == '.'))
        from--;
    char number[32];
    size_t size = (size_t)(unit - from);
    if (size == 0 || size >= sizeof number)
        return -1;
    memcpy(number, from, size);
    number[size] = '\0';
    const double maximum_us = 9e15;
    double duration_us = strtod(number, NULL);
    return duration_us < maximum_us ? (int64_t)(duration_us * 1e3 + 0.5) : -1;
}

static graph_cpu *cpu_of(ftrace_reader *r, nl_string digits)
{
    size_t number = (size_t)ftrace_number_of(digits);
    if (digits.size > 5 || number >= CPUS_MAX)
        return NULL;
    if (r->cpus[number] == NULL) {
        r->cpus[number] = nl_memory_check(calloc(1, sizeof *r->cpus[number]));
        r->cpus[number]->tid = -1;
    }
    return r->cpus[number];
}

static void ftrace_add_text(ftrace_reader *r, const char *name, nl_string value, sink *s)
{
    if (value.data != NULL && value.size > 0)
        builder_add_text(&r->builder, nl_string_of(name), value, s);
}

static void add_number(ftrace_reader *r, const char *name, int64_t value, sink *s)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%lld", (long long)value);
    char *kept = builder_bytes(&r->builder, (size_t)size);
    if (kept == NULL)
        return;
    memcpy(kept, text, (size_t)size);
    ftrace_add_text(r, name, (nl_string){kept, (size_t)size}, s);
}

static void begin_record(ftrace_reader *r, const char *event, nl_string prog, int64_t time_ns, size_t capacity, sink *s)
{
    builder *b = &r->builder;
    builder_begin(b, capacity + 256);
    kernel_text_date(b, time_ns, s);
    b->record->level = NL_SYSTEM;
    b->record->prog = prog;
    b->record->event = nl_string_of(event);
    r->last_ns = time_ns;
}

/* Reads "FUNCTION() {", "FUNCTION();" or "}" after the bar. */
static void ftrace_read_graph(ftrace_reader *r, const trace_head *h, nl_string text, int64_t duration_ns,
                              const text_lines *lines, sink *s)
{
    size_t indent = 0;
    while (indent < text.size && text.data[indent] == ' ')
        indent++;
    text_skip(&text, indent);
    size_t depth = indent < 2 ? 0 : (indent - 2) / 2;
    graph_cpu *cpu = cpu_of(r, h->cpu);
    if (text.size == 0 || text_take(&text, "/*") || cpu == NULL)
        return; /* the tracer prints events as comments */
    bool is_exit = *text.data == '}';
    nl_string name = {NULL, 0};
    char *within = depth < DEPTH_MAX ? cpu->within[depth] : NULL;
    if (!is_exit) {
        name = ftrace_read_name(&text);
        if (within != NULL)
            snprintf(within, NAME_MAX, "%.*s", (int)name.size, name.data);
    } else if (text_find(text, "/* ") != NULL) {
        const char *at = text_find(text, "/* ") + 3;
        nl_string remark = {at, (size_t)(text.data + text.size - at)};
        name = ftrace_read_name(&remark);
    } else if (within != NULL && *within != '\0') {
        name = nl_string_of(within);
    }
    begin_record(r, is_exit ? "ftrace.funcgraph_exit" : "ftrace.funcgraph_entry", h->comm, h->time_ns, 64, s);
    ftrace_add_text(r, "CPU", h->cpu, s);
    ftrace_add_text(r, "PID", h->pid, s);
    if (h->tid.data != NULL)
        ftrace_add_text(r, "TID", h->tid, s);
    else if (cpu->tid >= 0)
        add_number(r, "TID", cpu->tid, s);
    ftrace_add_text(r, "FUNCTION", name, s);
    add_number(r, "DEPTH", (int64_t)depth, s);
    if (duration_ns >= 0)
        add_number(r, "DURATION.NS", duration_ns, s);
    lines_put(lines, &r->builder, s);
}

/* Reads the line " 0)   bash-12   =>  ls-13", which reports the thread that now runs on a CPU. */
static bool ftrace_read_switch(nl_string line, graph_cpu *cpu)
{
    const char *arrow = text_find(line, "=>");
    trace_head to;
    if (arrow == NULL || !ftrace_read_task((nl_string){arrow + 2, (size_t)(line.data + line.size - (arrow + 2))}, &to))
        return false;
    memset(cpu->within, 0, sizeof cpu->within);
    cpu->tid = ftrace_number_of(to.tid);
    return true;
}

/* Removes an optional "SECONDS.FRACTION |". Leaves *time_ns unchanged if the text has another form. */
static void ftrace_read_bare_time(nl_string *text, int64_t *time_ns)
{
    nl_string at = *text, seconds, fraction;
    if (!text_digits(&at, &seconds) || seconds.size > 9 || !text_take(&at, ".") || !text_digits(&at, &fraction) ||
        fraction.size > 9)
        return;
    text_blanks(&at);
    if (!text_take(&at, "|"))
        return;
    text_blanks(&at);
    *text = at;
    *time_ns = ftrace_number_of(fraction);
    for (size_t i = fraction.size; i < 9; i++)
        *time_ns *= 10;
    *time_ns += ftrace_number_of(seconds) * NL_NS_PER_SECOND;
}

/*
 * Reads "[SECONDS |] CPU) [COMM-TID |] [FLAGS |] [DURATION us] | FUNCTION() {". Returns false if the text has another
 * form.
 */
static bool ftrace_read_graph_line(ftrace_reader *r, const text_lines *lines, sink *s)
{
    trace_head h = {.time_ns = r->last_ns}, task;
    nl_string text = lines->line;
    text_blanks(&text);
    ftrace_read_bare_time(&text, &h.time_ns);
    if (!text_digits(&text, &h.cpu) || !text_take(&text, ")"))
        return false;
    graph_cpu *cpu = cpu_of(r, h.cpu);
    const char *bar = text.size > 0 ? memrchr(text.data, '|', text.size) : NULL;
    if (cpu == NULL || bar == NULL)
        return cpu != NULL && ftrace_read_switch(text, cpu);
    nl_string before = {text.data, (size_t)(bar - text.data)};
    const char *first = before.size > 0 ? memchr(before.data, '|', before.size) : NULL;
    if (first != NULL && ftrace_read_task((nl_string){before.data, (size_t)(first - before.data)}, &task)) {
        h.comm = task.comm;
        h.tid = task.tid;
    }
    ftrace_read_graph(r, &h, (nl_string){bar + 1, (size_t)(text.data + text.size - (bar + 1))}, duration_of(before),
                      lines, s);
    return true;
}

/* ---- lines ---- */

/*
 * Reads "FUNCTION <-CALLER". trace-cmd prints "<--", and can print offsets after the names. Returns false if the text
 * has another form.
 */
static bool ftrace_read_call(ftrace_reader *r, const trace_head *h, nl_string text, const text_lines *lines, sink *s)
{
    const char *arrow = text_find(text, " <-");
    if (arrow == NULL)
        return false;
    nl_string function = {text.data, (size_t)(arrow - text.data)},
              caller = {arrow + 3, (size_t)(text.data + text.size - (arrow + 3))};
    text_take(&caller, "-");
    text_blanks(&caller);
    text_blanks(&function);
    begin_record(r, "ftrace.function", h->comm, h->time_ns, 0, s);
    ftrace_add_text(r, "CPU", h->cpu, s);
    ftrace_add_text(r, "PID", h->pid, s);
    ftrace_add_text(r, "TID", h->tid, s);
    ftrace_add_text(r, "FUNCTION", ftrace_read_name(&function), s);
    ftrace_add_text(r, "CALLER", ftrace_read_name(&caller), s);
    lines_put(lines, &r->builder, s);
    return true;
}

static void ftrace_take_event(ftrace_reader *r, const trace_head *h, nl_string event, nl_string text,
                              const text_lines *lines, sink *s)
{
    char *name = NULL;
    begin_record(r, "", h->comm, h->time_ns, 2 * text.size + event.size + (1 << 12), s);
    if ((name = builder_bytes(&r->builder, event.size)) != NULL)
        r->builder.record->event = (nl_string){memcpy(name, event.data, event.size), event.size};
    ftrace_add_text(r, "CPU", h->cpu, s);
    ftrace_add_text(r, "PID", h->pid, s);
    ftrace_add_text(r, "TID", h->tid, s);
    text_blanks(&text);
    if (text.size > 0)
        kernel_text_fields(&r->builder, text, s);
    lines_put(lines, &r->builder, s);
}

/* Reads the call or event that follows the head of a line, and puts its record into the sink. */
static void ftrace_read_rest(ftrace_reader *r, const trace_head *h, const text_lines *lines, sink *s)
{
    nl_string text = h->rest;
    text_blanks(&text);
    const char *colon = text.size > 0 ? memchr(text.data, ':', text.size) : NULL;
    nl_string event = {text.data, colon != NULL ? (size_t)(colon - text.data) : 0};
    bool is_event = event.size > 0 && memchr(event.data, ' ', event.size) == NULL;
    nl_string said = is_event ? (nl_string){colon + 1, (size_t)(text.data + text.size - (colon + 1))} : text;
    bool is_graph = nl_string_is(event, "funcgraph_entry") || nl_string_is(event, "funcgraph_exit");
    const char *bar = is_graph ? text_find(said, "|") : NULL;
    if (bar != NULL)
        ftrace_read_graph(r, h, (nl_string){bar + 1, (size_t)(said.data + said.size - (bar + 1))},
                          duration_of((nl_string){said.data, (size_t)(bar - said.data)}), lines, s);
    else if ((!is_event || nl_string_is(event, "function")) && ftrace_read_call(r, h, said, lines, s))
        return;
    else if (is_event)
        ftrace_take_event(r, h, event, said, lines, s);
    else
        lines_malformed(lines, "expected \"FUNCTION <-CALLER\" or \"EVENT:\"", s);
}

static bool is_decoration(nl_string line)
{
    text_blanks(&line);
    if (line.size == 0 || *line.data == '#' || text_take(&line, "cpus=") || text_take(&line, "version =") ||
        text_take(&line, "CPU ") || text_take(&line, "CPU:") || text_take(&line, "trace-cmd"))
        return true;
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] != '-')
            return false;
    return true;
}

static void read_lines(importer *base, const char *data, size_t size, sink *s)
{
    ftrace_reader *r = (ftrace_reader *)base;
    for (text_lines lines = lines_of(data, size); !s->stopped && lines_next(&lines);) {
        trace_head h = {0};
        if (ftrace_read_head(lines.line, &h))
            ftrace_read_rest(r, &h, &lines, s);
        else if (!is_decoration(lines.line) && !ftrace_read_graph_line(r, &lines, s))
            lines_malformed(&lines, "expected \"COMM-TID [CPU] SECONDS:\" or \"CPU) |\"", s);
    }
}

static void ftrace_close_reader(importer *base)
{
    ftrace_reader *r = (ftrace_reader *)base;
    for (size_t i = 0; i < CPUS_MAX; i++)
        free(r->cpus[i]);
    builder_free(&r->builder);
}

/* Returns whether the data is in this format. A comment "tracer:" or the first line that is not a comment decides. */
static bool ftrace_detect(const char *data, size_t size)
{
    trace_head h;
    for (text_lines lines = lines_of(data, size); lines_next(&lines);) {
        nl_string line = lines.line;
        if (text_take(&line, "# tracer:"))
            return true;
        if (ftrace_read_head(line, &h))
            return true;
        if (!is_decoration(line))
            return false;
    }
    return false;
}

const importer_kind ftrace_importer = {
    .name = "ftrace",
    .what = "text from ftrace's trace file, or from trace-cmd report",
    .in_order = true,
    .detect = ftrace_detect,
    .size = sizeof(ftrace_reader),
    .close = ftrace_close_reader,
    .read = read_lines,
};
