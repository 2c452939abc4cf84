/*
 * What `strace -f -tt -T` prints (-ttt too, to a file or among the output of the program).
 *
 * A call is a pair of records, NAME.start and NAME.end, that a number in CALL ties together; both have the thread in
 * TID. The start has the arguments in ARGS; the end has what came back: RET, RET.PATH (-y), ERRNO, ERROR, INFO (what is
 * in parentheses), DURATION in seconds, and in ARGS what was printed of the arguments only then. A call whose duration
 * is not known (without -T, or one that does not return) is one record, NAME. Signals are records "signal", ends of
 * processes "exit" and "killed". PROG is the last part of the path that the process executed last.
 *
 * Of -tt the day is not known: see import_about. A trace that goes past midnight is followed there.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/lines.h"
#include "convert/strace_threads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

typedef struct strace_reader {
    importer base;
    builder builder;
    strace_threads threads;
    uint64_t calls; /* begun so far: their numbers */
    /* Times of day */
    bool has_day;
    struct tm day;       /* of the times that are read now */
    unsigned tod;        /* the latest, in seconds */
    int64_t tod_time_ns; /* of that second */
} strace_reader;

/* A line as it is taken to pieces. */
typedef struct strace_line {
    uint32_t tid; /* 0: none */
    nl_string comm;
    nl_string time; /* as it is written */
    bool is_clock;  /* it is a time of day */
    nl_string rest;
} strace_line;

/* ---- heads of lines: [pid N] TIME ---- */

static bool number_below(nl_string digits, uint64_t limit, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < digits.size; i++) {
        *number = 10 * *number + (uint64_t)(digits.data[i] - '0');
        if (*number >= limit)
            return false;
    }
    return digits.size > 0;
}

/* "[pid 123<comm>] " or "123<comm> "; there may be none. False when there is one that can't be. */
static bool take_thread(nl_string *text, strace_line *l)
{
    nl_string digits, whole = *text;
    uint64_t tid;
    bool in_brackets = text_take(text, "[pid");
    text_blanks(text);
    if (!text_digits(text, &digits) || (!in_brackets && text->size > 0 && *text->data != ' ' && *text->data != '<')) {
        *text = whole;
        return !in_brackets;
    }
    if (!number_below(digits, STRACE_TID_LIMIT, &tid))
        return false;
    l->tid = (uint32_t)tid;
    const char *close = text_take(text, "<") ? text_find(*text, in_brackets ? ">]" : "> ") : NULL;
    if (close != NULL) {
        l->comm = (nl_string){text->data, (size_t)(close - text->data)};
        text_skip(text, l->comm.size + 1);
    }
    return !in_brackets || text_take(text, "]");
}

static bool take_time(nl_string *text, strace_line *l)
{
    nl_string digits, start = *text;
    if (!text_digits(text, &digits))
        return false;
    l->is_clock = text_take(text, ":");
    if (l->is_clock && (!text_digits(text, &digits) || !text_take(text, ":") || !text_digits(text, &digits)))
        return false;
    bool has_fraction = text_take(text, ".") && text_digits(text, &digits);
    l->time = (nl_string){start.data, (size_t)(text->data - start.data)};
    return (has_fraction || l->is_clock) && text_take(text, " ");
}

static bool take_head(nl_string text, strace_line *l)
{
    *l = (strace_line){0};
    if (!take_thread(&text, l))
        return false;
    text_blanks(&text);
    bool taken = take_time(&text, l);
    text_blanks(&text);
    l->rest = text;
    return taken;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '?';
}

/* The name of a call, with its parenthesis. */
static bool take_name(nl_string *text, nl_string *name)
{
    enum { NAME_LIMIT = 64 };
    size_t size = 0;
    while (size < text->size && size < NAME_LIMIT && is_name_byte(text->data[size]))
        size++;
    *name = (nl_string){text->data, size};
    text_skip(text, size);
    return size > 0 && text_take(text, "(");
}

/* ---- times ---- */

/* Digits after the point, as nanoseconds. */
static int64_t fraction_ns(nl_string text)
{
    const char *point = memchr(text.data, '.', text.size);
    int64_t ns = 0, unit = NL_NS_PER_SECOND;
    if (point == NULL)
        return 0;
    for (const char *at = point; ++at < text.data + text.size && (unit /= 10) > 0;)
        ns += (*at - '0') * unit;
    return ns;
}

/* The local day on which an input began that has such a time of day and was written last at written_ns. */
static void find_day(strace_reader *r, const import_about *about, unsigned tod)
{
    time_t written = (time_t)((about != NULL ? about->written_ns : 0) / NL_NS_PER_SECOND);
    if (about != NULL && about->has_base)
        written = (time_t)(about->base_ns / NL_NS_PER_SECOND);
    localtime_r(&written, &r->day);
    unsigned last = (unsigned)(r->day.tm_hour * 3600 + r->day.tm_min * 60 + r->day.tm_sec);
    if (about != NULL && !about->has_base && about->written_ns != 0 && tod > last)
        r->day.tm_mday--; /* it can't have begun after it ended: it began the day before */
    r->has_day = true;
    r->tod = tod + 1; /* not known yet */
}

/* HH:MM:SS on the day. */
static bool read_clock(strace_reader *r, nl_string text, const import_about *about, int64_t *time_ns)
{
    enum { HALF_A_DAY = 43200 };
    nl_string hours, minutes, seconds;
    uint64_t h, m, s;
    text_digits(&text, &hours);
    text_skip(&text, 1);
    text_digits(&text, &minutes);
    text_skip(&text, 1);
    text_digits(&text, &seconds);
    if (!number_below(hours, 24, &h) || !number_below(minutes, 60, &m) || !number_below(seconds, 61, &s))
        return false;
    unsigned tod = (unsigned)(h * 3600 + m * 60 + s);
    if (!r->has_day)
        find_day(r, about, tod);
    if (tod != r->tod) {
        if (tod + HALF_A_DAY < r->tod)
            r->day.tm_mday++;
        else if (r->tod + HALF_A_DAY < tod) /* back over midnight: a line that is a little late */
            r->day.tm_mday--;
        struct tm when = r->day;
        when.tm_hour = (int)h;
        when.tm_min = (int)m;
        when.tm_sec = (int)s;
        when.tm_isdst = -1;
        r->tod_time_ns = (int64_t)mktime(&when) * NL_NS_PER_SECOND;
        r->tod = tod;
    }
    *time_ns = r->tod_time_ns;
    return true;
}

/* What is wrong with the time; NULL: nothing. */
static const char *read_time(strace_reader *r, const strace_line *l, const import_about *about, int64_t *time_ns)
{
    static const uint64_t least = 100000000, most = INT64_MAX / NL_NS_PER_SECOND; /* 1973, 2262 */
    nl_string text = l->time, digits;
    uint64_t seconds;
    if (l->is_clock) {
        if (!read_clock(r, l->time, about, time_ns))
            return "the time can't be read";
    } else if (text_digits(&text, &digits), !number_below(digits, most, &seconds)) {
        return "the time can't be read";
    } else if (seconds < least) {
        return "the time is none of a day (strace -tt) or since 1970 (strace -ttt)";
    } else {
        *time_ns = (int64_t)seconds * NL_NS_PER_SECOND;
    }
    *time_ns += fraction_ns(l->time);
    return NULL;
}

/* Seconds in "<0.000110>", as nanoseconds. */
static bool read_duration(nl_string text, int64_t *ns)
{
    nl_string digits, whole = text;
    uint64_t seconds;
    if (!text_digits(&text, &digits) || !number_below(digits, 1000000000, &seconds))
        return false;
    if (text.size > 0 && (!text_take(&text, ".") || !text_digits(&text, &digits) || text.size > 0))
        return false;
    *ns = (int64_t)seconds * NL_NS_PER_SECOND + fraction_ns(whole);
    return true;
}

/* ---- records ---- */

static void begin_record(strace_reader *r, const strace_line *l, const strace_thread *t, int64_t time_ns)
{
    builder *b = &r->builder;
    builder_begin(b, 1 << 12);
    nl_record_set_time(b->record, time_ns);
    b->seen |= 1u << MEMBER_TIME;
    b->record->level = NL_SYSTEM;
    b->record->prog = l->comm.data != NULL ? l->comm : strace_threads_prog(&r->threads, t);
}

static void add(strace_reader *r, const char *name, nl_string value, sink *s)
{
    if (value.data != NULL)
        builder_add_text(&r->builder, (nl_string){name, strlen(name)}, value, s);
}

static void add_number(strace_reader *r, const char *name, uint64_t number, sink *s)
{
    enum { ROOM = 24 };
    char *text = builder_bytes(&r->builder, ROOM);
    if (text != NULL && number != 0)
        add(r, name, (nl_string){text, (size_t)snprintf(text, ROOM, "%" PRIu64, number)}, s);
}

/* NAME.SUFFIX */
static void set_event(strace_reader *r, nl_string name, const char *suffix)
{
    size_t size = strlen(suffix);
    char *text = builder_bytes(&r->builder, name.size + size);
    if (text == NULL)
        return;
    memcpy(text, name.data, name.size);
    memcpy(text + name.size, suffix, size);
    r->builder.record->event = (nl_string){text, name.size + size};
}

/* What came back of a call, from what stands behind its "= ". */
typedef struct outcome {
    nl_string value, path, name, error, info, duration;
    int64_t duration_ns;
    bool has_duration;
} outcome;

static void take_duration(nl_string *text, outcome *o)
{
    const char *open =
        text->size > 0 && text->data[text->size - 1] == '>' ? memrchr(text->data, '<', text->size) : NULL;
    if (open == NULL)
        return;
    nl_string inside = {open + 1, (size_t)(text->data + text->size - open - 2)};
    if (!read_duration(inside, &o->duration_ns))
        return;
    o->has_duration = true;
    o->duration = inside;
    text->size = (size_t)(open - text->data);
    text_drop_blanks(text);
}

static nl_string take_word(nl_string *text)
{
    size_t size = 0;
    while (size < text->size && text->data[size] != ' ' && text->data[size] != '<')
        size++;
    nl_string word = {text->data, size};
    text_skip(text, size);
    return word;
}

static outcome read_outcome(nl_string text)
{
    outcome o = {0};
    take_duration(&text, &o);
    o.value = take_word(&text);
    if (text_take(&text, "<")) {
        const char *close = memrchr(text.data, '>', text.size);
        size_t size = close != NULL ? (size_t)(close - text.data) : text.size;
        o.path = (nl_string){text.data, size};
        text_skip(&text, size + (close != NULL));
    }
    text_blanks(&text);
    if (text.size > 1 && text.data[0] == 'E' && text.data[1] >= 'A' && text.data[1] <= 'Z')
        o.name = take_word(&text);
    text_blanks(&text);
    if (text_take(&text, "(") && text_drop(&text, ")"))
        *(o.name.data != NULL ? &o.error : &o.info) = text;
    return o;
}

static void add_outcome(strace_reader *r, const outcome *o, sink *s)
{
    add(r, "RET", o->value, s);
    add(r, "RET.PATH", o->path, s);
    add(r, "ERRNO", o->name, s);
    add(r, "ERROR", o->error, s);
    add(r, "INFO", o->info, s);
    add(r, "DURATION", o->duration, s);
}

/* ---- calls ---- */

typedef struct call {
    const strace_line *line;
    strace_thread *thread;
    int64_t time_ns; /* of the line */
    nl_string name, arguments;
} call;

static void put_start(strace_reader *r, const call *c, sink *s)
{
    begin_record(r, c->line, c->thread, c->time_ns);
    set_event(r, c->name, ".start");
    add_number(r, "TID", c->thread->tid, s);
    add_number(r, "CALL", c->thread->call, s);
    if (c->arguments.size > 0)
        add(r, "ARGS", c->arguments, s);
    builder_finish(&r->builder, false, s);
}

/* The end of a call that began before; o NULL: a call without one, which is all in this record. */
static void put_end(strace_reader *r, const call *c, const char *suffix, int64_t time_ns, const outcome *o, sink *s)
{
    begin_record(r, c->line, c->thread, time_ns);
    set_event(r, c->name, suffix);
    add_number(r, "TID", c->thread->tid, s);
    add_number(r, "CALL", c->thread->call, s);
    if (c->arguments.size > 0)
        add(r, "ARGS", c->arguments, s);
    add_outcome(r, o, s);
    builder_finish(&r->builder, false, s);
}

/* A process learns its name from the path that it executes, and its children from it. */
static void follow_names(strace_reader *r, const call *c, bool begins, bool failed)
{
    strace_threads *all = &r->threads;
    if (text_is(c->name, "execve") || text_is(c->name, "execveat")) {
        const char *quote = begins ? text_find(c->arguments, "\"") : NULL;
        if (quote != NULL) {
            nl_string path = {quote + 1, (size_t)(c->arguments.data + c->arguments.size - quote - 1)};
            const char *close = text_find(path, "\"");
            path.size = close != NULL ? (size_t)(close - path.data) : path.size;
            const char *slash = path.size > 0 ? memrchr(path.data, '/', path.size) : NULL;
            text_skip(&path, slash != NULL ? (size_t)(slash + 1 - path.data) : 0);
            c->thread->next_prog = strace_threads_name(all, path);
        }
        if (!failed && c->thread->next_prog != 0)
            c->thread->prog = c->thread->next_prog;
    } else if (begins && (text_is(c->name, "fork") || text_is(c->name, "vfork") || text_is(c->name, "clone") ||
                          text_is(c->name, "clone3"))) {
        all->parent_prog = c->thread->prog;
    }
}

/* The "= ", with a parenthesis and blanks before it, that ends the arguments. SIZE_MAX when there is none. */
static size_t find_outcome(nl_string text)
{
    size_t at = text.size;
    while (at >= 3) {
        const char *equals = memrchr(text.data, '=', at);
        if (equals == NULL)
            return SIZE_MAX;
        at = (size_t)(equals - text.data);
        size_t before = at;
        while (before > 0 && text.data[before - 1] == ' ')
            before--;
        if (before < at && before > 0 && text.data[before - 1] == ')' && at + 1 < text.size && text.data[at + 1] == ' ')
            return at;
    }
    return SIZE_MAX;
}

/* Splits what follows a name's parenthesis into arguments and outcome. */
static bool split(nl_string text, nl_string *arguments, outcome *o)
{
    size_t equals = find_outcome(text);
    if (equals == SIZE_MAX)
        return false;
    *arguments = (nl_string){text.data, equals};
    text_drop_blanks(arguments);
    arguments->size--; /* the parenthesis */
    text_skip(&text, equals + 2);
    *o = read_outcome(text);
    return true;
}

static bool is_failure(const outcome *o)
{
    return o->value.size == 0 || *o->value.data == '-' || *o->value.data == '?';
}

/* NAME(ARGUMENTS) = OUTCOME, or NAME(ARGUMENTS <unfinished ...>. What is wrong; NULL: nothing. */
static const char *take_call(strace_reader *r, call *c, nl_string text, sink *s)
{
    nl_string rest = text;
    outcome o;
    if (!take_name(&rest, &c->name))
        return "the line is none of strace's: there is no call, signal or end of a process";
    if (text_drop(&rest, "<unfinished ...>") || text_drop(&rest, "<detached ...>")) {
        text_drop_blanks(&rest);
        text_drop(&rest, ",");
        c->arguments = rest;
        c->thread->call = ++r->calls;
        c->thread->start_ns = c->time_ns;
        follow_names(r, c, true, true);
        put_start(r, c, s);
        return NULL;
    }
    if (!split(rest, &c->arguments, &o))
        return "the call does not end: there is no \") = \"";
    follow_names(r, c, true, is_failure(&o));
    if (o.has_duration) {
        c->thread->call = ++r->calls;
        put_start(r, c, s);
        c->arguments.size = 0;
        put_end(r, c, ".end", c->time_ns + o.duration_ns, &o, s);
    } else {
        c->thread->call = 0;
        put_end(r, c, "", c->time_ns, &o, s);
    }
    c->thread->call = 0;
    return NULL;
}

/* <... NAME resumed>ARGUMENTS) = OUTCOME, whose "<... " was taken. */
static const char *take_resumed(strace_reader *r, call *c, nl_string text, sink *s)
{
    static const char word[] = " resumed>";
    outcome o;
    const char *found = text_find(text, word);
    if (found == NULL)
        return "the line is none of strace's: something is resumed that has no name";
    c->name = (nl_string){text.data, (size_t)(found - text.data)};
    text_skip(&text, c->name.size + sizeof word - 1);
    if (text_drop(&text, "<unfinished ...>"))
        return NULL; /* it goes on being unfinished */
    if (!split(text, &c->arguments, &o))
        return "the call does not end: there is no \") = \"";
    if (text_take(&c->arguments, ","))
        text_blanks(&c->arguments);
    follow_names(r, c, false, is_failure(&o));
    bool begun = c->thread->call != 0 || strace_threads_adopt(&r->threads, c->thread);
    if (!begun)
        c->thread->call = ++r->calls;
    put_end(r, c, ".end", begun && o.has_duration ? c->thread->start_ns + o.duration_ns : c->time_ns, &o, s);
    c->thread->call = 0;
    return NULL;
}

/* ---- signals and ends ---- */

/* "si_signo=SIGCHLD, si_code=CLD_EXITED, ...": a field each. */
static void add_members(strace_reader *r, nl_string text, sink *s)
{
    while (text.size > 0) {
        const char *equals = memchr(text.data, '=', text.size);
        if (equals == NULL)
            return;
        nl_string name = {text.data, (size_t)(equals - text.data)};
        text_skip(&text, name.size + 1);
        size_t depth = 0, size = 0;
        for (; size < text.size && (depth > 0 || text.data[size] != ','); size++) {
            depth += text.data[size] == '{' || text.data[size] == '[';
            depth -= depth > 0 && (text.data[size] == '}' || text.data[size] == ']');
        }
        builder_add_text(&r->builder, name, (nl_string){text.data, size}, s);
        text_skip(&text, size + (size < text.size));
        text_blanks(&text);
    }
}

static void begin_happening(strace_reader *r, const call *c, const char *event, sink *s)
{
    begin_record(r, c->line, c->thread, c->time_ns);
    r->builder.record->event = (nl_string){event, strlen(event)};
    add_number(r, "TID", c->thread->tid, s);
}

/* --- SIGCHLD {...} ---, --- stopped by SIGTSTP ---; the first dashes were taken. */
static const char *take_signal(strace_reader *r, const call *c, nl_string text, sink *s)
{
    if (!text_drop(&text, " ---"))
        return "the line does not end";
    bool stopped = text_take(&text, "stopped by ");
    begin_happening(r, c, stopped ? "stopped" : "signal", s);
    nl_string name = take_word(&text);
    add(r, "SIGNAL", name, s);
    text_blanks(&text);
    if (text_take(&text, "{")) {
        text_drop(&text, "}");
        add_members(r, text, s);
    }
    builder_finish(&r->builder, false, s);
    return NULL;
}

/* +++ exited with 0 +++, +++ killed by SIGKILL (core dumped) +++, +++ superseded by execve in pid 5 +++ */
static const char *take_end(strace_reader *r, const call *c, nl_string text, sink *s)
{
    if (!text_drop(&text, " +++"))
        return "the line does not end";
    bool exited = text_take(&text, "exited with "), killed = !exited && text_take(&text, "killed by ");
    if (exited || killed) {
        begin_happening(r, c, exited ? "exit" : "killed", s);
        bool core = text_drop(&text, " (core dumped)");
        add(r, exited ? "STATUS" : "SIGNAL", text, s);
        if (core)
            add(r, "CORE", (nl_string){"true", 4}, s);
    } else {
        begin_happening(r, c, "superseded", s);
        add(r, "TEXT", text, s);
    }
    builder_finish(&r->builder, false, s);
    strace_threads_end(&r->threads, c->thread);
    return NULL;
}

/* ---- lines ---- */

/* What is wrong with a line that has a head; NULL: nothing. */
static const char *take_line(strace_reader *r, const strace_line *l, sink *s)
{
    call c = {.line = l, .thread = strace_threads_get(&r->threads, l->tid)};
    const char *why = read_time(r, l, s->about, &c.time_ns);
    nl_string text = l->rest;
    if (why != NULL)
        return why;
    if (text_take(&text, "<... "))
        return take_resumed(r, &c, text, s);
    if (text_take(&text, "--- "))
        return take_signal(r, &c, text, s);
    if (text_take(&text, "+++ "))
        return take_end(r, &c, text, s);
    return take_call(r, &c, text, s);
}

/* What strace says of itself, among the rest or at the end of a line that it interrupts. */
static bool is_of_strace(nl_string line)
{
    nl_string text = line;
    text_blanks(&text);
    return text.size == 0 || text_take(&line, "strace: ") || text_is(text, "<unfinished ...>") ||
           text_take(&line, " > "); /* of a stack, strace -k */
}

/* A line that "strace: Process N attached" interrupts: the rest of it is a call that is unfinished. */
static bool cut_interruption(nl_string *line)
{
    static const char word[] = "strace: Process ";
    nl_string text = *line, digits;
    const char *found = text_find(text, word);
    if (found == NULL)
        return false;
    text_skip(&text, (size_t)(found - text.data) + sizeof word - 1);
    if (!text_digits(&text, &digits) || !text_is(text, " attached"))
        return false;
    line->size = (size_t)(found - line->data);
    return true;
}

static void read_lines(importer *base, const char *data, size_t size, sink *s)
{
    strace_reader *r = (strace_reader *)base;
    for (text_lines lines = lines_of(data, size); !s->stopped && lines_next(&lines);) {
        strace_line l;
        nl_string text = lines.line;
        if (is_of_strace(text))
            continue;
        bool good = take_head(text, &l);
        const char *why = good ? take_line(r, &l, s) : "the line is none of strace -tt's: there is no time";
        if (why != NULL && good && cut_interruption(&l.rest)) {
            nl_buffer whole = {0};
            nl_buffer_append(&whole, l.rest.data, l.rest.size);
            nl_buffer_append(&whole, " <unfinished ...>", strlen(" <unfinished ...>"));
            l.rest = (nl_string){whole.data, whole.size};
            why = take_line(r, &l, s);
            nl_buffer_free(&whole);
        }
        if (why != NULL)
            lines_malformed(&lines, why, s);
    }
}

static importer *open_reader(void *shared)
{
    (void)shared;
    strace_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->base.kind = &strace_importer;
    return &r->base;
}

static void close_reader(importer *base)
{
    strace_reader *r = (strace_reader *)base;
    builder_free(&r->builder);
    strace_threads_free(&r->threads);
    free(r);
}

/* Whether one of the first lines is strace's; others may be of the program that it ran. */
static bool detect(const char *data, size_t size)
{
    enum { LINES = 20 };
    text_lines lines = lines_of(data, size);
    for (int i = 0; i < LINES && lines_next(&lines); i++) {
        strace_line l;
        nl_string name;
        if (take_head(lines.line, &l) && (take_name(&l.rest, &name) || text_take(&l.rest, "<... ") ||
                                          text_take(&l.rest, "--- SIG") || text_take(&l.rest, "+++ ")))
            return true;
    }
    return false;
}

const importer_kind strace_importer = {
    .name = "strace",
    .what = "what strace -f -tt -T prints (or -ttt): calls as NAME.start and NAME.end",
    .in_order = true,
    .detect = detect,
    .open = open_reader,
    .close = close_reader,
    .read = read_lines,
};
