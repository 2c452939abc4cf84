#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/error.h"
#include "base/memory.h"

#include "synthesis/syscalls.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names of threads ---- */

typedef struct program {
    entry entry;
    value name;
} program;

static void learn(nl_synthesis *s, value tid, value name)
{
    key k = {.values = {tid}, .count = 1};
    bool added;
    if (tid.kind != VALUE_INT || name.kind == VALUE_NONE)
        return;
    program *p = (program *)map_put(&s->programs, &k, sizeof *p, &added);
    if (p != NULL)
        p->name = name;
}

void learn_programs(nl_synthesis *s, const event *e)
{
    learn(s, event_value(e, s->tid_field), e->prog);
    for (unsigned i = 0; i < 4 && s->learn_tid[i] != NO_FIELD; i++)
        learn(s, event_value(e, s->learn_tid[i]), event_value(e, s->learn_name[i]));
}

static value program_of(const nl_synthesis *s, value tid)
{
    key k = {.values = {tid}, .count = 1};
    const program *p = (const program *)map_find(&s->programs, &k);
    return p != NULL ? p->name : tid;
}

/* ---- addresses ---- */

static size_t bytes_of(nl_string digits, unsigned char *bytes, size_t most)
{
    size_t count = 0;
    for (; count < most && 2 * count + 1 < digits.size; count++) {
        unsigned byte;
        if (sscanf((char[]){digits.data[2 * count], digits.data[2 * count + 1], '\0'}, "%2x", &byte) != 1)
            return 0;
        bytes[count] = (unsigned char)byte;
    }
    return 2 * count == digits.size ? count : 0;
}

/* The kernel's arrays of bytes, in hexadecimal, as an address: 4 or 16 bytes of one, or a socket's with its port. */
static value address_of(nl_synthesis *s, value v)
{
    char scratch[NL_FIELD_TEXT_SIZE], out[INET6_ADDRSTRLEN];
    unsigned char bytes[28];
    nl_string digits = value_text(v, scratch);
    size_t count = bytes_of(digits, bytes, sizeof bytes);
    uint16_t family = 0;
    const unsigned char *at = NULL;
    if (count == 4 || count == 16) {
        family = count == 4 ? AF_INET : AF_INET6;
        at = bytes;
    } else if (count == sizeof bytes) {
        family = bytes[0] | bytes[1]; /* the other one is 0, in the order of whichever machine wrote it */
        at = family == AF_INET ? bytes + 4 : family == AF_INET6 ? bytes + 8 : NULL;
    }
    if (at == NULL || inet_ntop(family, at, out, sizeof out) == NULL)
        return v;
    return value_of_text(&s->texts, (nl_string){out, strlen(out)});
}

/* ---- names of what is a number in the kernel ---- */

bool nl_synthesis_wants_symbols(const nl_synthesis *s)
{
    return s->wants_symbols;
}

void nl_synthesis_set_symbols(nl_synthesis *s, nl_symbol_finder *find, void *user)
{
    s->find_symbol = find;
    s->symbol_user = user;
}

static value symbol_of(nl_synthesis *s, value v)
{
    char text[32];
    nl_string name = {NULL, 0};
    if (v.kind != VALUE_INT && v.kind != VALUE_UINT)
        return v;
    if (s->find_symbol != NULL)
        name = s->find_symbol(s->symbol_user, (uint64_t)v.number);
    if (name.data == NULL)
        name = (nl_string){text, (size_t)snprintf(text, sizeof text, "0x%llx", (unsigned long long)v.number)};
    return value_of_text(&s->texts, name);
}

/* Addresses in programs, and of locks, as they are written everywhere else. */
static value hexadecimal_of(nl_synthesis *s, value v)
{
    char text[32];
    if (v.kind != VALUE_INT && v.kind != VALUE_UINT)
        return v;
    int size = snprintf(text, sizeof text, "0x%llx", (unsigned long long)v.number);
    return value_of_text(&s->texts, (nl_string){text, (size_t)size});
}

/* The kernel's number of a device as MAJOR:MINOR, as lsblk has it. */
static value device_of(nl_synthesis *s, value v)
{
    enum { MINOR_BITS = 20 };
    char text[32];
    if ((v.kind != VALUE_INT && v.kind != VALUE_UINT) || v.number < 0)
        return v;
    int size = snprintf(text, sizeof text, "%lld:%lld", (long long)v.number >> MINOR_BITS,
                        (long long)v.number & ((1 << MINOR_BITS) - 1));
    return value_of_text(&s->texts, (nl_string){text, (size_t)size});
}

static value syscall_of(nl_synthesis *s, value v)
{
    if (v.kind != VALUE_INT || v.number < 0 || v.number >= nl_syscall_count || nl_syscall_names[v.number] == NULL)
        return v;
    const char *name = nl_syscall_names[v.number];
    return value_of_text(&s->texts, (nl_string){name, strlen(name)});
}

/* ---- fields ---- */

static value in_table(const table *t, value v)
{
    for (size_t i = 0; i < t->count; i++) {
        value k = t->keys[i].values[0];
        if (k.kind == v.kind && k.number == v.number)
            return t->values[i];
    }
    return v;
}

value making_value(nl_synthesis *s, const making *m, const event *begin, const event *end)
{
    if (m->function == FUNCTION_LITERAL)
        return m->literal;
    value v = m->side != SIDE_BEGIN ? event_value(end, m->field) : (value){0};
    if (v.kind == VALUE_NONE && m->side != SIDE_END)
        v = event_value(begin, m->field);
    if (v.kind == VALUE_NONE)
        return v;
    switch (m->function) {
    case FUNCTION_PROGRAM:
        return program_of(s, v);
    case FUNCTION_ADDRESS:
        return address_of(s, v);
    case FUNCTION_SYSCALL:
        return syscall_of(s, v);
    case FUNCTION_SYMBOL:
        return symbol_of(s, v);
    case FUNCTION_HEXADECIMAL:
        return hexadecimal_of(s, v);
    case FUNCTION_DEVICE:
        return device_of(s, v);
    case FUNCTION_TABLE:
        return in_table(m->table, v);
    case FUNCTION_NONE:
    case FUNCTION_LITERAL:
        break;
    }
    return v;
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

nl_record *make_record(nl_synthesis *s, const rule *r, const char *suffix, int64_t time_ns, const event *like)
{
    nl_record *record = s->spare_count > 0 ? s->spare[--s->spare_count] : nl_record_new();
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
    if (s->made_count == s->made_capacity) {
        size_t capacity = s->made_capacity == 0 ? 64 : 2 * s->made_capacity;
        nl_record **made = nl_memory_check(calloc(capacity, sizeof(nl_record *)));
        for (size_t i = 0; i < s->made_count; i++)
            made[i] = s->made[(s->made_first + i) % s->made_capacity];
        free(s->made);
        s->made = made;
        s->made_first = 0;
        s->made_capacity = capacity;
    }
    s->made[(s->made_first + s->made_count++) % s->made_capacity] = record;
    s->stats.made++;
}

/* The simplest rule: an event becomes a record, with the fields that are wanted of it. */
void make_take(nl_synthesis *s, rule *r, event *e)
{
    nl_record *record = make_record(s, r, NULL, e->time_ns, e);
    make_fields(s, record, r, e, e);
    make_put(s, r, record);
}

static void keep_spare(nl_synthesis *s, nl_record *record)
{
    enum { SPARE_MAX = 64 };
    if (s->spare == NULL)
        s->spare = nl_memory_check(calloc(SPARE_MAX, sizeof(nl_record *)));
    nl_record_clear(record);
    if (s->spare_count < SPARE_MAX)
        s->spare[s->spare_count++] = record;
    else
        nl_record_free(record);
}

const nl_record *nl_synthesis_next(nl_synthesis *s)
{
    NL_REQUIRE(s != NULL, "synthesis is NULL", NULL);
    if (s->given != NULL)
        keep_spare(s, s->given);
    s->given = NULL;
    if (s->made_count == 0)
        return NULL;
    s->given = s->made[s->made_first];
    s->made_first = (s->made_first + 1) % s->made_capacity;
    s->made_count--;
    return s->given;
}
