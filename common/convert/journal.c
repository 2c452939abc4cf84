/*
 * Reads systemd's journal in the export format of `journalctl -o export`. An entry is a sequence of fields and an empty
 * line. A field is a NAME=VALUE line. If the value has control characters, the field is a NAME line, the size of the
 * value in 8 bytes (little endian), the value, and a newline.
 *
 * An entry becomes a record. Its time is _SOURCE_REALTIME_TIMESTAMP (the program sent the entry) or, if that is
 * missing, __REALTIME_TIMESTAMP (the journal received the entry). HOST is _HOSTNAME, PROG is SYSLOG_IDENTIFIER or
 * _COMM, and LVL is derived from PRIORITY. The event is the meaning of a well-known MESSAGE_ID, or otherwise
 * _TRANSPORT. All fields of the entry except those of HOST and PROG become fields of the record.
 */
#include "config.h"

#include "convert/builder.h"
#include "base/error.h"
#include "base/text.h"
#include "convert/cutter.h"
#include "convert/lines.h"
#include "convert/syslog.h"

enum {
    VALUE_SIZE_MAX = 32 << 20, /* bytes; a larger size means that the field is damaged */
    ENTRY_SIZE_MAX = 48 << 20, /* bytes; the reader cuts larger entries into pieces of whole fields */
};

typedef struct journal_field {
    nl_string name, value;
} journal_field;

typedef enum taken { TAKEN_FIELD, TAKEN_END_OF_ENTRY, TAKEN_DAMAGED, TAKEN_ALL } taken;

/*
 * Reads the size and the value of a binary field. Returns the end of the field. Returns NULL if the field is incomplete
 * or damaged; sets *damaged in the second case.
 */
static const char *journal_read_binary(const char *at, const char *end, nl_string *value, bool *damaged)
{
    uint64_t size = 0;
    if (end - at < 8)
        return NULL;
    for (int i = 7; i >= 0; i--)
        size = size << 8 | (unsigned char)at[i];
    at += 8;
    *damaged = size > VALUE_SIZE_MAX || ((uint64_t)(end - at) > size && at[size] != '\n');
    if (*damaged || (uint64_t)(end - at) <= size)
        return NULL;
    *value = (nl_string){at, (size_t)size};
    return at + size + 1;
}

/* Reads the field or the empty line at *at, and moves *at to its end. Returns TAKEN_ALL if the field is incomplete. */
static taken journal_read_field(const char **at, const char *end, journal_field *field)
{
    const char *newline = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (newline == NULL)
        return TAKEN_ALL;
    if (newline == *at) {
        ++*at;
        return TAKEN_END_OF_ENTRY;
    }
    const char *equals = memchr(*at, '=', (size_t)(newline - *at));
    field->name = (nl_string){*at, (size_t)((equals != NULL ? equals : newline) - *at)};
    if (equals != NULL) {
        field->value = (nl_string){equals + 1, (size_t)(newline - equals - 1)};
        *at = newline + 1;
        return equals > field->name.data ? TAKEN_FIELD : TAKEN_DAMAGED;
    }
    bool damaged = false;
    const char *after = journal_read_binary(newline + 1, end, &field->value, &damaged);
    if (after == NULL)
        return damaged ? TAKEN_DAMAGED : TAKEN_ALL;
    *at = after;
    return TAKEN_FIELD;
}

/* Returns the start of the next entry, which follows an empty line, or NULL if there are no more empty lines. */
static const char *next_entry(const char *at, const char *end)
{
    const char *found = at < end ? memmem(at, (size_t)(end - at), "\n\n", 2) : NULL;
    return found != NULL ? found + 2 : NULL;
}

/*
 * Returns the size of the whole entries. If the data begins with an incomplete entry of more than ENTRY_SIZE_MAX bytes,
 * returns the size of its whole fields.
 */
static size_t journal_cut_entries(const char *data, size_t size)
{
    const char *at = data, *end = data + size, *whole = data;
    journal_field field;
    for (;;) {
        switch (journal_read_field(&at, end, &field)) {
        case TAKEN_FIELD:
            break;
        case TAKEN_END_OF_ENTRY:
            whole = at;
            break;
        case TAKEN_DAMAGED:
            at = next_entry(at, end);
            if (at == NULL)
                return (size_t)(whole - data);
            whole = at;
            break;
        case TAKEN_ALL:
            return (size_t)((size > ENTRY_SIZE_MAX && whole == data ? at : whole) - data);
        }
    }
}

/* ---- the meaning of fields ---- */

typedef struct journal_entry {
    nl_string taken_at, sent_at, host, identifier, command, priority, id, transport;
} journal_entry;

static nl_string *journal_place_of(journal_entry *e, nl_string name)
{
    static const struct {
        const char *name;
        size_t place;
    } places[] = {
        {"__REALTIME_TIMESTAMP", offsetof(journal_entry, taken_at)},
        {"_SOURCE_REALTIME_TIMESTAMP", offsetof(journal_entry, sent_at)},
        {"_HOSTNAME", offsetof(journal_entry, host)},
        {"SYSLOG_IDENTIFIER", offsetof(journal_entry, identifier)},
        {"_COMM", offsetof(journal_entry, command)},
        {"PRIORITY", offsetof(journal_entry, priority)},
        {"MESSAGE_ID", offsetof(journal_entry, id)},
        {"_TRANSPORT", offsetof(journal_entry, transport)},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (nl_string_is(name, places[i].name))
            return (nl_string *)((char *)e + places[i].place);
    return NULL;
}

static nl_level level_of(nl_string priority)
{
    return priority.size == 1 && priority.data[0] >= '0' ? syslog_level((unsigned)(priority.data[0] - '0'))
                                                         : NL_LEVEL_NONE;
}

/*
 * Returns the event of an entry. The table has the IDs of messages about the start and stop of units, sessions and
 * hosts (from systemd's sd-messages.h).
 */
static nl_string event_of(const journal_entry *e)
{
    static const struct {
        const char *id, *event;
    } messages[] = {
        {"7d4958e842da4a758f6c1cdc7b36dcc5", "unit.starting"},
        {"39f53479d3a045ac8e11786248231fbf", "unit.started"},
        {"be02cf6855d2428ba40df7e9d022f03d", "unit.failed"},
        {"de5b426a63be47a7b6ac3eaac82e2f6f", "unit.stopping"},
        {"9d1aaa27d60140bd96365438aad20286", "unit.stopped"},
        {"d34d037fff1847e6ae669a370e694725", "unit.reloading"},
        {"7b05ebc668384222baa8881179cfda54", "unit.reloaded"},
        {"7ad2d189f7e94e70a38c781354912448", "unit.success"},
        {"d9b373ed55a64feb8242e02dbe79a49c", "unit.failure.result"},
        {"98e322203f7a4ed290d09fe03c09fe15", "unit.process.exit"},
        {"8d45620c1a4348dbb17410da57c60c66", "session.start"},
        {"3354939424b4456d9802ca8333ed424a", "session.end"},
        {"fc2e22bc6ee647b6b90729ab34a250b1", "coredump"},
        {"b07a249cd024414a82dd00cd181378ff", "startup.finished"},
        {"d93fb3c9c24d451a97cea615ce59c00b", "journal.stop"},
        {"f77379a8490b408bbe5f6940505a777b", "journal.start"},
        {"c7a787079b354eaaa9e77b371893cd27", "time.change"},
        {"6bbd95ee977941e497c48be27c254128", "sleep.start"},
        {"8811e6df2a8e40f58a94cea26f8ebf14", "sleep.stop"},
    };
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        if (nl_string_is(e->id, messages[i].id))
            return nl_string_of(messages[i].event);
    return e->transport.size > 0 ? e->transport : (nl_string){"journal", 7};
}

/* Converts microseconds since 1970 to nanoseconds. Returns false if the text is not a valid time. */
static bool read_time(nl_string text, int64_t *time_ns)
{
    nl_string digits;
    uint64_t us = 0;
    if (!text_digits(&text, &digits) || text.size > 0)
        return false;
    for (size_t i = 0; i < digits.size; i++)
        if (__builtin_mul_overflow(us, 10, &us) || __builtin_add_overflow(us, (uint64_t)(digits.data[i] - '0'), &us))
            return false;
    return us <= INT64_MAX && !__builtin_mul_overflow((int64_t)us, 1000, time_ns);
}

/* ---- reading ---- */

typedef struct journal_reader {
    importer base;
    builder builder;
} journal_reader;

static void journal_close_reader(importer *base)
{
    journal_reader *r = (journal_reader *)base;
    builder_free(&r->builder);
}

/* Reads the entry at *at. Returns false and sets the error if the entry is malformed. */
static bool journal_read_entry(journal_reader *r, const char **at, const char *end, journal_entry *e, sink *s)
{
    builder *b = &r->builder;
    for (;;) {
        const char *before = *at;
        journal_field field;
        switch (journal_read_field(at, end, &field)) {
        case TAKEN_END_OF_ENTRY:
            return true;
        case TAKEN_DAMAGED:
            return nl_error_false(NL_ERROR_INVALID, "damaged entry: expected NAME=VALUE, or NAME, size and value");
        case TAKEN_ALL:
            return before == end || nl_error_false(NL_ERROR_INVALID, "the input ends within a field");
        case TAKEN_FIELD:
            break;
        }
        nl_string *place = journal_place_of(e, field.name);
        if (place != NULL && place->data == NULL)
            *place = field.value;
        nl_field *added = builder_add_name(b, field.name, s);
        added->type = NL_TYPE_STRING;
        added->string = field.value;
    }
}

/* Removes the fields whose values became HOST and PROG. */
static void drop_fields(builder *b, const nl_string *of)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++)
        if (b->fields[i].string.data != of[0].data && b->fields[i].string.data != of[1].data)
            b->fields[kept++] = b->fields[i];
    b->count = kept;
}

static bool put_entry(journal_reader *r, const journal_entry *e, sink *s)
{
    builder *b = &r->builder;
    int64_t time_ns;
    nl_string prog = e->identifier.data != NULL ? e->identifier : e->command;
    if (e->sent_at.data == NULL && e->taken_at.data == NULL)
        return nl_error_false(NL_ERROR_INVALID, "an entry has no __REALTIME_TIMESTAMP");
    if (!(e->sent_at.data != NULL && read_time(e->sent_at, &time_ns)) &&
        !(e->taken_at.data != NULL && read_time(e->taken_at, &time_ns)))
        return nl_error_false(NL_ERROR_INVALID, "invalid time");
    drop_fields(b, (nl_string[]){e->host, prog});
    nl_record_set_time(b->record, time_ns);
    b->seen |= 1u << MEMBER_TIME;
    b->record->level = level_of(e->priority);
    b->record->event = event_of(e);
    b->record->host = e->host;
    b->record->prog = prog;
    return builder_finish(b, false, s);
}

static void read_entries(importer *base, const char *data, size_t size, sink *s)
{
    journal_reader *r = (journal_reader *)base;
    uint64_t line = 1;
    for (const char *at = data, *end = data + size; at < end && !s->stopped;) {
        const char *start = at;
        journal_entry e = {0};
        builder_begin(&r->builder, size);
        bool good = journal_read_entry(r, &at, end, &e, s);
        if (!good && (at = next_entry(at, end)) == NULL)
            at = end;
        if (good && r->builder.count > 0)
            good = put_entry(r, &e, s);
        if (!good)
            sink_malformed(s, line, (uint64_t)(start - data), nl_error_message(), start, (size_t)(at - start));
        line += cutter_count_lines(start, (size_t)(at - start));
    }
}

static bool journal_detect(const char *data, size_t size)
{
    nl_string text = {data, size};
    return text_take(&text, "__CURSOR=") || text_take(&text, "__REALTIME_TIMESTAMP=") ||
           text_take(&text, "__MONOTONIC_TIMESTAMP=") || text_take(&text, "__SEQNUM=");
}

const importer_kind journal_importer = {
    .name = "journal",
    .what = "systemd's journal, from journalctl -o export",
    .detect = journal_detect,
    .cut = journal_cut_entries,
    .size = sizeof(journal_reader),
    .close = journal_close_reader,
    .read = read_entries,
};
