/*
 * Reads the output of `strace -f -tt -T` (or -ttt), even if it is mixed with the output of the program.
 *
 * A call becomes two records, NAME.start and NAME.end, with the same number in CALL and the thread in TID. NAME.start
 * has the arguments in ARGS. NAME.end has the fields RET, RET.PATH (-y), ERRNO, ERROR, INFO (the text in parentheses)
 * and DURATION in seconds. Its ARGS are the arguments that strace prints when the call returns. A call without a
 * duration that strace prints on one line becomes one record, NAME. A signal becomes a record "signal" or "stopped".
 * The end of a process becomes a record "exit", "killed" or "superseded". PROG is the last component of the path that
 * the process executed last.
 *
 * strace -tt prints no date (see import_about). The reader changes the day when a trace passes midnight.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/strace_line.h"
#include "convert/strace_threads.h"
#include "convert/strace_time.h"
#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>

typedef struct strace_reader {
    importer base;
    builder builder;
    strace_threads threads;
    uint64_t calls; /* the number of the last call */
    strace_clock clock;
} strace_reader;

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

static void strace_add(strace_reader *r, const char *name, nl_string value, sink *s)
{
    if (value.data != NULL)
        builder_add_text(&r->builder, nl_string_of(name), value, s);
}

static void add_number(strace_reader *r, const char *name, uint64_t number, sink *s)
{
    enum { SIZE = 24 };
    char *text = builder_bytes(&r->builder, SIZE);
    if (text != NULL && number != 0)
        strace_add(r, name, (nl_string){text, (size_t)snprintf(text, SIZE, "%" PRIu64, number)}, s);
}

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

static void add_outcome(strace_reader *r, const strace_outcome *o, sink *s)
{
    strace_add(r, "RET", o->value, s);
    strace_add(r, "RET.PATH", o->path, s);
    strace_add(r, "ERRNO", o->name, s);
    strace_add(r, "ERROR", o->error, s);
    strace_add(r, "INFO", o->info, s);
    strace_add(r, "DURATION", o->duration, s);
}

/* ---- calls ---- */

typedef struct call {
    const strace_line *line;
    strace_thread *thread;
    int64_t time_ns; /* time of the line */
    nl_string name, arguments;
} call;

static bool put_start(strace_reader *r, const call *c, sink *s)
{
    begin_record(r, c->line, c->thread, c->time_ns);
    set_event(r, c->name, ".start");
    add_number(r, "TID", c->thread->tid, s);
    add_number(r, "CALL", c->thread->call, s);
    if (c->arguments.size > 0)
        strace_add(r, "ARGS", c->arguments, s);
    return builder_finish(&r->builder, false, s);
}

static bool put_end(strace_reader *r, const call *c, const char *suffix, int64_t time_ns, const strace_outcome *o,
                    sink *s)
{
    begin_record(r, c->line, c->thread, time_ns);
    set_event(r, c->name, suffix);
    add_number(r, "TID", c->thread->tid, s);
    add_number(r, "CALL", c->thread->call, s);
    if (c->arguments.size > 0)
        strace_add(r, "ARGS", c->arguments, s);
    add_outcome(r, o, s);
    return builder_finish(&r->builder, false, s);
}

/*
 * Tracks the program of a thread. execve changes the program, and new processes inherit the program. `begins` is false
 * if the line contains only the end of the call.
 */
static void follow_names(strace_reader *r, const call *c, bool begins, bool failed)
{
    strace_threads *all = &r->threads;
    if (nl_string_is(c->name, "execve") || nl_string_is(c->name, "execveat")) {
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
    } else if (begins && (nl_string_is(c->name, "fork") || nl_string_is(c->name, "vfork") ||
                          nl_string_is(c->name, "clone") || nl_string_is(c->name, "clone3"))) {
        all->parent_prog = c->thread->prog;
    }
}

/* Reads NAME(ARGUMENTS) = OUTCOME, or NAME(ARGUMENTS <unfinished ...>. Returns false and sets the error on failure. */
static bool strace_read_call(strace_reader *r, call *c, nl_string text, sink *s)
{
    nl_string rest = text;
    strace_outcome o;
    if (!strace_line_name(&rest, &c->name))
        return nl_error_false(NL_ERROR_INVALID, "not strace output: no call, signal or process exit");
    if (text_drop(&rest, "<unfinished ...>") || text_drop(&rest, "<detached ...>")) {
        text_drop_blanks(&rest);
        text_drop(&rest, ",");
        c->arguments = rest;
        c->thread->call = ++r->calls;
        c->thread->start_ns = c->time_ns;
        follow_names(r, c, true, true);
        return put_start(r, c, s);
    }
    if (!strace_line_split(rest, &c->arguments, &o))
        return nl_error_false(NL_ERROR_INVALID, "incomplete call: no \") = \"");
    follow_names(r, c, true, strace_outcome_is_failure(&o));
    bool good = true;
    c->thread->call = o.has_duration ? ++r->calls : 0;
    if (o.has_duration) {
        good = put_start(r, c, s);
        c->arguments.size = 0; /* the record of the start has the arguments */
    }
    good =
        good && put_end(r, c, o.has_duration ? ".end" : "", c->time_ns + (o.has_duration ? o.duration_ns : 0), &o, s);
    c->thread->call = 0;
    return good;
}

/* Reads <... NAME resumed>ARGUMENTS) = OUTCOME after "<... ". Returns false if the text has another form. */
static bool strace_read_resumed(strace_reader *r, call *c, nl_string text, sink *s)
{
    static const char word[] = " resumed>";
    strace_outcome o;
    const char *found = text_find(text, word);
    if (found == NULL)
        return nl_error_false(NL_ERROR_INVALID, "not strace output: the resumed call has no name");
    c->name = (nl_string){text.data, (size_t)(found - text.data)};
    text_skip(&text, c->name.size + sizeof word - 1);
    if (text_drop(&text, "<unfinished ...>"))
        return true; /* the call is still unfinished */
    if (!strace_line_split(text, &c->arguments, &o))
        return nl_error_false(NL_ERROR_INVALID, "incomplete call: no \") = \"");
    if (text_take(&c->arguments, ","))
        text_blanks(&c->arguments);
    follow_names(r, c, false, strace_outcome_is_failure(&o));
    bool begun = c->thread->call != 0 || strace_threads_adopt(&r->threads, c->thread);
    if (!begun)
        c->thread->call = ++r->calls;
    int64_t end_ns = begun && o.has_duration ? c->thread->start_ns + o.duration_ns : c->time_ns;
    bool good = put_end(r, c, ".end", end_ns, &o, s);
    c->thread->call = 0;
    return good;
}

/* ---- signals and ends of processes ---- */

/* Adds a field for each member of a text such as "si_signo=SIGCHLD, si_code=CLD_EXITED". */
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
    r->builder.record->event = nl_string_of(event);
    add_number(r, "TID", c->thread->tid, s);
}

/*
 * Reads "SIGCHLD {...} ---" or "stopped by SIGTSTP ---" after the first dashes. Returns false if the text has another
 * form.
 */
static bool strace_read_signal(strace_reader *r, const call *c, nl_string text, sink *s)
{
    if (!text_drop(&text, " ---"))
        return nl_error_false(NL_ERROR_INVALID, "incomplete line");
    bool stopped = text_take(&text, "stopped by ");
    begin_happening(r, c, stopped ? "stopped" : "signal", s);
    nl_string name = strace_line_word(&text);
    strace_add(r, "SIGNAL", name, s);
    text_blanks(&text);
    if (text_take(&text, "{")) {
        text_drop(&text, "}");
        add_members(r, text, s);
    }
    return builder_finish(&r->builder, false, s);
}

/*
 * Reads "exited with 0 +++", "killed by SIGKILL (core dumped) +++" or "superseded by execve in pid 5 +++". Returns
 * false if the text has another form.
 */
static bool strace_read_end(strace_reader *r, const call *c, nl_string text, sink *s)
{
    if (!text_drop(&text, " +++"))
        return nl_error_false(NL_ERROR_INVALID, "incomplete line");
    bool exited = text_take(&text, "exited with "), killed = !exited && text_take(&text, "killed by ");
    if (exited || killed) {
        begin_happening(r, c, exited ? "exit" : "killed", s);
        bool core = text_drop(&text, " (core dumped)");
        strace_add(r, exited ? "STATUS" : "SIGNAL", text, s);
        if (core)
            strace_add(r, "CORE", (nl_string){"true", 4}, s);
    } else {
        begin_happening(r, c, "superseded", s);
        strace_add(r, "TEXT", text, s);
    }
    strace_threads_end(&r->threads, c->thread);
    return builder_finish(&r->builder, false, s);
}

/* ---- lines ---- */

/* Reads a line after its header. Returns false and sets the error if the line is malformed. */
static bool strace_take_line(strace_reader *r, const strace_line *l, sink *s)
{
    call c = {.line = l, .thread = strace_threads_get(&r->threads, l->tid)};
    nl_string text = l->rest;
    if (!strace_time(&r->clock, l, s->about, &c.time_ns))
        return false;
    if (text_take(&text, "<... "))
        return strace_read_resumed(r, &c, text, s);
    if (text_take(&text, "--- "))
        return strace_read_signal(r, &c, text, s);
    if (text_take(&text, "+++ "))
        return strace_read_end(r, &c, text, s);
    return strace_read_call(r, &c, text, s);
}

/* Returns whether the line is blank, or was printed by strace but describes no call, signal or end of a process. */
static bool is_of_strace(nl_string line)
{
    nl_string text = line;
    text_blanks(&text);
    return text.size == 0 || text_take(&line, "strace: ") || nl_string_is(text, "<unfinished ...>") ||
           text_take(&line, " > "); /* the line belongs to a stack that strace -k prints */
}

/*
 * Removes "strace: Process N attached" from the end of an unfinished call. strace prints this text in the middle of a
 * line. Returns whether the line contained this text.
 */
static bool strace_remove_interruption(nl_string *line)
{
    static const char word[] = "strace: Process ";
    nl_string text = *line, digits;
    const char *found = text_find(text, word);
    if (found == NULL)
        return false;
    text_skip(&text, (size_t)(found - text.data) + sizeof word - 1);
    if (!text_digits(&text, &digits) || !nl_string_is(text, " attached"))
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
        if (!strace_line_head(text, &l)) {
            lines_malformed(&lines, "no time; run strace with -tt", s);
            continue;
        }
        bool good = strace_take_line(r, &l, s);
        if (!good && strace_remove_interruption(&l.rest)) {
            nl_buffer whole = {0};
            nl_buffer_append(&whole, l.rest.data, l.rest.size);
            nl_buffer_append(&whole, " <unfinished ...>", strlen(" <unfinished ...>"));
            l.rest = (nl_string){whole.data, whole.size};
            good = strace_take_line(r, &l, s);
            nl_buffer_free(&whole);
        }
        if (!good)
            lines_malformed(&lines, nl_error_message(), s);
    }
}

static void strace_close_reader(importer *base)
{
    strace_reader *r = (strace_reader *)base;
    builder_free(&r->builder);
    strace_threads_free(&r->threads);
}

/*
 * Returns whether the data is output of strace. Examines several lines, because the traced program may have printed
 * some of them.
 */
static bool strace_detect(const char *data, size_t size)
{
    enum { LINES = 20 };
    text_lines lines = lines_of(data, size);
    for (int i = 0; i < LINES && lines_next(&lines); i++) {
        strace_line l;
        nl_string name;
        if (strace_line_head(lines.line, &l) && (strace_line_name(&l.rest, &name) || text_take(&l.rest, "<... ") ||
                                                 text_take(&l.rest, "--- SIG") || text_take(&l.rest, "+++ ")))
            return true;
    }
    return false;
}

const importer_kind strace_importer = {
    .name = "strace",
    .what = "output of strace -f -tt -T or strace -f -ttt -T",
    .in_order = true,
    .detect = strace_detect,
    .size = sizeof(strace_reader),
    .close = strace_close_reader,
    .read = read_lines,
};
