#include "config.h"

#include "base/text.h"
#include "synthesis/synthesis_internal.h"

#include "synthesis/syscalls.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* ---- names of threads ---- */

typedef struct program {
    entry entry;
    value name;
} program;

static void learn(nl_synthesis *s, value tid, value name)
{
    key k = {.values = {tid}, .count = 1};
    if (tid.kind != VALUE_INT || name.kind == VALUE_NONE)
        return;
    program *p = map_find_or_add(s->programs, &k, sizeof *p);
    if (p != NULL)
        p->name = name;
}

void learn_programs(nl_synthesis *s, const event *e)
{
    learn(s, event_value(e, s->tid_field), e->prog);
    for (unsigned i = 0; i < LEARN_MAX && s->learn_tid[i] != NO_FIELD; i++)
        learn(s, event_value(e, s->learn_tid[i]), event_value(e, s->learn_name[i]));
}

value convert_program(nl_synthesis *s, const making *m, value v)
{
    key k = {.values = {v}, .count = 1};
    const program *p = g_hash_table_lookup(s->programs, &k);
    (void)m;
    return p != NULL ? p->name : v;
}

/* ---- other conversions ---- */

/*
 * Converts hexadecimal digits to bytes. Returns the number of bytes. Returns 0 if the digits are invalid or need more
 * than `capacity` bytes.
 */
static size_t parse_hexadecimal(nl_string digits, unsigned char *bytes, size_t capacity)
{
    size_t count = 0;
    for (; count < capacity && 2 * count + 1 < digits.size; count++) {
        unsigned byte;
        if (sscanf((char[]){digits.data[2 * count], digits.data[2 * count + 1], '\0'}, "%2x", &byte) != 1)
            return 0;
        bytes[count] = (unsigned char)byte;
    }
    return 2 * count == digits.size ? count : 0;
}

/*
 * Converts the hexadecimal bytes that the kernel logs to an address: the 4 or 16 bytes of an address, or the 28 bytes
 * of a socket's address.
 */
static value convert_address(nl_synthesis *s, const making *m, value v)
{
    char scratch[NL_FIELD_TEXT_SIZE], out[INET6_ADDRSTRLEN];
    unsigned char bytes[28];
    size_t count = parse_hexadecimal(value_text(v, scratch), bytes, sizeof bytes);
    uint16_t family = 0;
    const unsigned char *at = NULL;
    (void)m;
    if (count == 4 || count == 16) {
        family = count == 4 ? AF_INET : AF_INET6;
        at = bytes;
    } else if (count == sizeof bytes) {
        family = bytes[0] | bytes[1]; /* one of the two bytes is 0 in either byte order */
        at = family == AF_INET ? bytes + 4 : family == AF_INET6 ? bytes + 8 : NULL;
    }
    if (at == NULL || inet_ntop(family, at, out, sizeof out) == NULL)
        return v;
    return value_of_text(s->texts, nl_string_of(out));
}

static value convert_hexadecimal(nl_synthesis *s, const making *m, value v)
{
    char text[32];
    (void)m;
    if (v.kind != VALUE_INT && v.kind != VALUE_UINT)
        return v;
    int size = snprintf(text, sizeof text, "0x%llx", (unsigned long long)v.number);
    return value_of_text(s->texts, (nl_string){text, (size_t)size});
}

value convert_symbol(nl_synthesis *s, const making *m, value v)
{
    nl_string name = {NULL, 0};
    if ((v.kind == VALUE_INT || v.kind == VALUE_UINT) && s->find_symbol != NULL)
        name = s->find_symbol(s->symbol_user, (uint64_t)v.number);
    return name.data != NULL ? value_of_text(s->texts, name) : convert_hexadecimal(s, m, v);
}

/* Converts the kernel's device number to MAJOR:MINOR, as lsblk prints it. */
static value convert_device(nl_synthesis *s, const making *m, value v)
{
    enum { MINOR_BITS = 20 };
    char text[32];
    (void)m;
    if ((v.kind != VALUE_INT && v.kind != VALUE_UINT) || v.number < 0)
        return v;
    int size = snprintf(text, sizeof text, "%lld:%lld", (long long)v.number >> MINOR_BITS,
                        (long long)v.number & ((1 << MINOR_BITS) - 1));
    return value_of_text(s->texts, (nl_string){text, (size_t)size});
}

static value convert_syscall(nl_synthesis *s, const making *m, value v)
{
    (void)m;
    if (v.kind != VALUE_INT || v.number < 0 || v.number >= nl_syscall_count || nl_syscall_names[v.number] == NULL)
        return v;
    const char *name = nl_syscall_names[v.number];
    return value_of_text(s->texts, nl_string_of(name));
}

value convert_by_table(nl_synthesis *s, const making *m, value v)
{
    (void)s;
    for (size_t i = 0; i < m->table->count; i++)
        if (value_is_equal(m->table->keys[i], v))
            return m->table->values[i];
    return v;
}

converter *find_converter(const char *name, size_t size)
{
    static const struct {
        const char *name;
        converter *convert;
    } converters[] = {{"program", convert_program}, {"address", convert_address},         {"syscall", convert_syscall},
                      {"symbol", convert_symbol},   {"hexadecimal", convert_hexadecimal}, {"device", convert_device}};
    for (size_t i = 0; i < sizeof converters / sizeof *converters; i++)
        if (strlen(converters[i].name) == size && memcmp(converters[i].name, name, size) == 0)
            return converters[i].convert;
    return NULL;
}

bool nl_synthesis_wants_symbols(const nl_synthesis *s)
{
    return s->wants_symbols;
}

void nl_synthesis_set_symbols(nl_synthesis *s, nl_symbol_finder *find, void *user)
{
    s->find_symbol = find;
    s->symbol_user = user;
}

/* ---- fields ---- */

static value making_value(nl_synthesis *s, const making *m, const event *begin, const event *end)
{
    if (m->field == NO_FIELD)
        return m->literal;
    value v = m->side != SIDE_BEGIN ? event_value(end, m->field) : (value){0};
    if (v.kind == VALUE_NONE && m->side != SIDE_END)
        v = event_value(begin, m->field);
    return v.kind != VALUE_NONE && m->convert != NULL ? m->convert(s, m, v) : v;
}

void make_fields(nl_synthesis *s, nl_record *record, const rule *r, const event *begin, const event *end)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    for (size_t i = 0; i < r->making_count; i++) {
        value v = making_value(s, &r->makings[i], begin, end);
        nl_string text = value_text(v, scratch);
        if (strcmp(r->makings[i].name, "PROG") == 0 && v.kind != VALUE_NONE)
            nl_record_set_prog(record, text.data, text.size);
        else if (strcmp(r->makings[i].name, "HOST") == 0 && v.kind != VALUE_NONE)
            nl_record_set_host(record, text.data, text.size);
        else
            value_add(record, r->makings[i].name, v);
    }
}

void add_time(nl_record *record, const char *name, int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    nl_record_add_string(record, name, text, nl_time_format_ulm(time_ns, text));
}

/* ---- records ---- */

nl_record *make_record(const rule *r, const char *suffix, int64_t time_ns, const event *like)
{
    nl_record *record = nl_record_new();
    char name[256], scratch[NL_FIELD_TEXT_SIZE];
    int size = snprintf(name, sizeof name, "%s%s%s", r->name, suffix != NULL ? "." : "", suffix != NULL ? suffix : "");
    nl_record_set_time(record, time_ns);
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, name, size < (int)sizeof name ? (size_t)size : sizeof name - 1);
    if (like != NULL) {
        nl_string host = value_text(like->host, scratch);
        nl_record_set_host(record, host.data, host.size);
        nl_string prog = value_text(like->prog, scratch);
        nl_record_set_prog(record, prog.data, prog.size);
    }
    return record;
}

void make_put(nl_synthesis *s, const rule *r, nl_record *record)
{
    queue_take(s, record, r);
    g_queue_push_tail(&s->made, record);
    s->stats.made++;
}

/* Builds a record from an event, for a "make" rule. */
void make_take(nl_synthesis *s, const clause *c, event *e)
{
    nl_record *record = make_record(c->rule, NULL, e->time_ns, e);
    make_fields(s, record, c->rule, e, e);
    make_put(s, c->rule, record);
}

const nl_record *nl_synthesis_next(nl_synthesis *s)
{
    nl_record_free(s->given);
    s->given = g_queue_pop_head(&s->made);
    return s->given;
}
