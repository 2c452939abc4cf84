/*
 * The log of Linux's audit system (auditd, /var/log/audit/audit.log):
 *
 *   [node=HOST ]type=TYPE msg=audit(SECONDS.MILLISECONDS:SERIAL): NAME=value NAME="value" msg='NAME=value ...'
 *
 * A line becomes a record. NL.EVNT is the type, HOST the node, PROG the value of comm, and SERIAL the number that the
 * lines of one event share. The fields in msg='...' and the fields that auditd appends after a byte 0x1d also become
 * fields of the record.
 */
#include "config.h"

#include "base/error.h"
#include "convert/builder.h"
#include "convert/lines.h"

typedef struct audit_reader {
    importer base;
    builder builder;
} audit_reader;

enum { ENRICHED = 0x1d }; /* the byte before the fields that auditd appends */

typedef struct audit_head {
    nl_string node, type, seconds, serial;
} audit_head;

/*
 * Removes the text before the byte `stop`, and that byte, from the beginning of *text. Sets *part to the text before
 * `stop`. Returns false if the text does not contain `stop`.
 */
static bool take_until(nl_string *text, char stop, nl_string *part)
{
    const char *end = text->size > 0 ? memchr(text->data, stop, text->size) : NULL;
    if (end == NULL)
        return false;
    *part = (nl_string){text->data, (size_t)(end - text->data)};
    text_skip(text, part->size + 1);
    return true;
}

/*
 * Reads the beginning of a line. Sets *rest to the fields after the beginning. Returns false if the text has another
 * form.
 */
static bool audit_read_head(nl_string line, audit_head *h, nl_string *rest)
{
    *h = (audit_head){0};
    if (text_take(&line, "node=") && !take_until(&line, ' ', &h->node))
        return false;
    if (!text_take(&line, "type=") || !take_until(&line, ' ', &h->type) || !text_take(&line, "msg=audit(") ||
        !take_until(&line, ':', &h->seconds) || !take_until(&line, ')', &h->serial) || !text_take(&line, ":"))
        return false;
    *rest = line;
    return h->type.size > 0 && h->seconds.size > 0;
}

/* Removes a value, with or without quotes, from the beginning of *text. Returns the value without the quotes. */
static nl_string audit_read_value(nl_string *text)
{
    nl_string value;
    const char quote = text->size > 0 ? *text->data : '\0';
    if (quote == '"' || quote == '\'') {
        nl_string after = *text;
        text_skip(&after, 1);
        if (take_until(&after, quote, &value)) {
            *text = after;
            return value;
        }
    }
    size_t size = 0;
    while (size < text->size && text->data[size] != ' ' && text->data[size] != ENRICHED)
        size++;
    value = (nl_string){text->data, size};
    text_skip(text, size);
    return value;
}

static void audit_read_fields(builder *b, nl_string text, bool is_inner, sink *s)
{
    while (text.size > 0) {
        if (*text.data == ' ' || *text.data == ENRICHED) {
            text_skip(&text, 1);
            continue;
        }
        size_t size = 0;
        while (size < text.size && text.data[size] != '=' && text.data[size] != ' ')
            size++;
        const nl_string name = {text.data, size};
        text_skip(&text, size);
        if (text.size == 0 || *text.data != '=')
            continue; /* a word without a value */
        text_skip(&text, 1);
        const bool has_fields = !is_inner && nl_string_is(name, "msg") && text.size > 0 && *text.data == '\'';
        const nl_string value = audit_read_value(&text);
        if (has_fields)
            audit_read_fields(b, value, true, s);
        else if (nl_string_is(name, "comm") && b->record->prog.data == NULL)
            b->record->prog = value;
        else
            builder_add_text(b, name, value, s);
    }
}

static void audit_read_line(builder *b, const text_lines *lines, sink *s)
{
    static const char serial[] = "SERIAL";
    audit_head h;
    nl_string rest;
    if (!audit_read_head(lines->line, &h, &rest)) {
        lines_malformed(lines, "expected \"type=TYPE msg=audit(TIME:SERIAL):\"", s);
        return;
    }
    builder_begin(b, lines->line.size);
    if (!builder_set(b, MEMBER_TIME, h.seconds)) {
        lines_malformed(lines, "invalid time", s);
        return;
    }
    b->record->event = h.type;
    b->record->level = NL_SYSTEM;
    if (h.node.data != NULL)
        b->record->host = h.node;
    builder_add_text(b, (nl_string){serial, sizeof serial - 1}, h.serial, s);
    audit_read_fields(b, rest, false, s);
    lines_put(lines, b, s);
}

static void read_audit(importer *base, const char *data, size_t size, sink *s)
{
    audit_reader *r = (audit_reader *)base;
    for (text_lines lines = lines_of(data, size); !s->stopped && lines_next(&lines);)
        if (lines.line.size > 0)
            audit_read_line(&r->builder, &lines, s);
}

static void close_audit(importer *base)
{
    builder_free(&((audit_reader *)base)->builder);
}

static bool audit_detect(const char *data, size_t size)
{
    audit_head h;
    nl_string rest;
    text_lines lines = lines_of(data, size);
    return lines_next(&lines) && audit_read_head(lines.line, &h, &rest);
}

const importer_kind audit_importer = {
    .name = "audit",
    .what = "the log of Linux's audit system",
    .detect = audit_detect,
    .size = sizeof(audit_reader),
    .close = close_audit,
    .read = read_audit,
};
