#include "config.h"

#include "base/error.h"
#include "base/text.h"
#include "record/bytes.h"
#include "record/record_internal.h"
#include "record/text.h"

#include <stddef.h>
#include <string.h>

#define NAME (NL_BYTE_NAME | NL_BYTE_NAME_FIRST)

/* clang-format off */
const unsigned char nl_byte_class[256] = {
    ['A' ... 'Z'] = NAME, ['a' ... 'z'] = NAME, ['_'] = NAME,
    ['0' ... '9'] = NL_BYTE_NAME, ['.'] = NL_BYTE_NAME, ['-'] = NL_BYTE_NAME,
    [0 ... 31] = NL_BYTE_QUOTED | NL_BYTE_ESCAPED, [127] = NL_BYTE_QUOTED | NL_BYTE_ESCAPED,
    ['"'] = NL_BYTE_QUOTED | NL_BYTE_ESCAPED, ['\\'] = NL_BYTE_ESCAPED,
    [' '] = NL_BYTE_QUOTED, ['='] = NL_BYTE_QUOTED,
};
/* clang-format on */

enum { WINDOW_WORDS = 4, WINDOW = 64 * WINDOW_WORDS };

/* The next bytes of the line, with the ends of names and values marked. */
typedef struct window {
    const char *start, *end;      /* end of the window or of the line */
    uint64_t stops[WINDOW_WORDS]; /* a bit for each blank and '=' */
} window;

/* The state of reading a line. The open field is the field whose value may continue. */
typedef struct scan {
    const nl_text_format *format;
    nl_record *record;
    nl_fraction fraction;
    const char *at; /* next byte to read */
    const char *end;
    const char *limit; /* end of the readable memory */
    const char *cut;   /* start of the next record in this line, or NULL */
    unsigned seen;     /* bits of the standard members that were read so far */
    bool bad_time;     /* the time is invalid; the reason is this thread's error */
    bool open;         /* a field is open; the members from `escaped` to value_end describe it */
    bool escaped;      /* the value has escapes */
    bool unclosed;     /* the value begins with a quote that is not closed */
    nl_member member;
    nl_string name;
    const char *value; /* NULL if the value is empty and unquoted */
    const char *value_end;
    nl_known_names *known;
    unsigned place; /* index in known of the next plain field */
    window window;
} scan;

/* Removes the "_." that a writer put before a name. */
static nl_string nl_text_unescape_name(const nl_text_format *format, nl_string name)
{
    nl_string bare = name;
    while (bare.size > 2 && bare.data[0] == '_' && bare.data[1] == '.')
        bare = (nl_string){bare.data + 2, bare.size - 2};
    if (bare.size == name.size || nl_text_member(format, bare.data, bare.size) == NL_MEMBER_NONE)
        return name;
    return (nl_string){name.data + 2, name.size - 2};
}

/* Returns the end of a word, or its '='. */
static const char *find_stop(const scan *s, const char *at)
{
    return nl_find_any(at, s->end, s->limit, ' ', '\t', '=');
}

/* Returns the '=' of a NAME= at a position, or NULL. */
static const char *find_equals(const scan *s, const char *at)
{
    const char *equals = nl_find_name_end(at, s->end, s->limit);
    return equals < s->end && *equals == '=' && nl_byte_is(*at, NL_BYTE_NAME_FIRST) ? equals : NULL;
}

char nl_text_unescape(const char **at, const char *end)
{
    const char *text = *at + 1;
    *at += 2;
    switch (text < end ? *text : '\0') {
    case '"':
    case '\\':
        return *text;
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'x':
        if (end - text > 2 && nl_hex_digit(text[1]) >= 0 && nl_hex_digit(text[2]) >= 0) {
            *at += 2;
            return (char)(nl_hex_digit(text[1]) * 16 + nl_hex_digit(text[2]));
        }
    }
    *at -= 1;
    return '\\';
}

static nl_string unescape_value(nl_record *record, const char *at, const char *end)
{
    char *data = nl_record_allocate(record, (size_t)(end - at));
    if (data == NULL)
        return (nl_string){"", 0};
    size_t size = 0;
    while (at < end)
        data[size++] = *at == '\\' ? nl_text_unescape(&at, end) : *at++;
    return (nl_string){data, size};
}

/*
 * Sets the record's time. If the digits after the point are a number of microseconds without its leading zeros, removes
 * the raw line from the record. An encoder then writes the time with the zeros.
 */
static void text_set_time(scan *s, nl_string value)
{
    nl_record *record = s->record;
    if (nl_time_parse_usual(value.data, value.size, &s->known->day, &record->time_ns))
        return;
    if (s->format->parse_time(value.data, value.size, s->fraction, &record->time_ns) != NL_OK) {
        s->bad_time = true;
        return;
    }
    int64_t plain_ns;
    if (s->fraction != NL_FRACTION_DECIMAL &&
        (s->format->parse_time(value.data, value.size, NL_FRACTION_DECIMAL, &plain_ns) != NL_OK ||
         plain_ns != record->time_ns))
        record->raw = (nl_string){NULL, 0};
}

/* Adds a field without escapes to the record. */
static inline void put_field(scan *s, nl_member member, nl_string name, nl_string value)
{
    nl_record *record = s->record;
    if (member == NL_MEMBER_NONE) {
        nl_field *field = nl_record_append(record);
        if (field == NULL)
            return;
        field->name = name;
        field->type = NL_TYPE_STRING;
        field->string = value;
    } else if (member == NL_MEMBER_TIME) {
        text_set_time(s, value);
    } else if (member == NL_MEMBER_LEVEL) {
        record->level_text = value;
        record->level = nl_level_parse(value.data, value.size);
    } else {
        *(member == NL_MEMBER_HOST ? &record->host : member == NL_MEMBER_PROG ? &record->prog : &record->event) = value;
    }
}

/* Adds the open field to the record. */
static void close_field(scan *s)
{
    if (!s->open)
        return;
    s->open = false;
    nl_string value = {s->value, (size_t)(s->value_end - s->value)};
    if (s->value == NULL)
        value = (nl_string){s->name.data + s->name.size, 0};
    else if (s->escaped)
        value = unescape_value(s->record, s->value, s->value_end);
    put_field(s, s->member, s->name, value);
}

/* Returns whether only blanks follow, and then the end or a NAME=. */
static bool field_follows(const scan *s, const char *at)
{
    if (at < s->end && !nl_byte_is_blank(*at))
        return false;
    at = nl_skip_blanks(at, s->end);
    return at == s->end || find_equals(s, at) != NULL;
}

/*
 * Reads a value in quotes. Returns false and reads nothing if the closing quote is missing or not followed by a field.
 */
static bool text_read_quoted(scan *s)
{
    const char *at = s->at + 1;
    bool escaped = false;
    for (;; at += 2) {
        at = at < s->end ? nl_find_any(at, s->end, s->limit, '"', '\\', '"') : s->end;
        if (at == s->end)
            return false;
        if (*at == '"')
            break;
        escaped = true;
    }
    if (!field_follows(s, at + 1))
        return false;
    s->value = s->at + 1;
    s->value_end = at;
    s->escaped = escaped;
    s->at = at + 1;
    return true;
}

/* Returns whether [start, equals) ends with the name of the time field, and the time of a record follows. */
static bool ends_as_time(const scan *s, const char *start, const char *equals, bool within)
{
    nl_string time = s->format->names[NL_MEMBER_TIME];
    return (size_t)(equals - start) >= time.size && memcmp(equals - time.size, time.data, time.size) == 0 &&
           s->format->starts_record(equals + 1, s->end, within);
}

/*
 * Reads a word of an unquoted value, or a word outside of all fields. Sets s->cut if the next record begins within the
 * word.
 */
static void text_read_word(scan *s)
{
    const char *start = s->at;
    const char *stop = find_stop(s, start);
    for (; stop < s->end && *stop == '='; stop = find_stop(s, stop + 1)) {
        if (ends_as_time(s, start, stop, true)) {
            s->cut = stop - s->format->names[NL_MEMBER_TIME].size;
            return;
        }
    }
    s->at = stop;
    if (stop == start)
        return;
    if (s->value == NULL)
        s->value = start;
    s->value_end = stop;
}

static void open_field(scan *s, const char *name, const char *equals, nl_member member)
{
    s->open = true;
    s->escaped = s->unclosed = false;
    s->value = s->value_end = NULL;
    s->name = (nl_string){name, (size_t)(equals - name)};
    s->member = member;
    unsigned bit = 1u << member;
    if (member != NL_MEMBER_NONE && (s->seen & bit))
        s->member = NL_MEMBER_NONE;
    else if (name[0] == '_')
        s->name = nl_text_unescape_name(s->format, s->name);
    s->seen |= bit;
    s->at = equals + 1;
    if (s->at < s->end && *s->at == '"') {
        if (text_read_quoted(s))
            return;
        s->unclosed = true;
    }
    text_read_word(s);
}

static bool is_prefix(const char *text, size_t size, nl_string name)
{
    return size <= name.size && memcmp(text, name.data, size) == 0;
}

/*
 * Returns whether the next record starts within a field name that ends with the name of the time field. In that case,
 * sets s->cut. If the field name is exactly the name of the time field, it starts the next record if this record
 * already has a time. A longer name may be an ordinary name (STARTDATE), or may contain the rest of a truncated record
 * ("SENDATE=", from "SEND.SZ=" and "DATE="). The longer name contains the rest of a truncated record if the format's
 * second field follows the time, and one of these conditions is true:
 * - This record already has the second field.
 * - The open value of this record has an unclosed quote.
 * - The part before the time field's name is the beginning of the name that this record lacks. This record lacks the
 *   second field, or the time field if it has no time.
 */
static bool begins_next_record(scan *s, const char *name, const char *equals)
{
    const nl_text_format *format = s->format;
    nl_string time = format->names[NL_MEMBER_TIME], second = format->names[format->order[1]];
    bool had_time = s->seen & 1u << NL_MEMBER_TIME;
    size_t rest = (size_t)(equals - name) - time.size; /* part of the truncated name */
    if (!ends_as_time(s, name, equals, false) || (rest == 0 && !had_time))
        return false;
    if (rest > 0) {
        const char *at = nl_skip_blanks(nl_find_any(equals, s->end, s->limit, ' ', '\t', ' '), s->end);
        bool in_order =
            (size_t)(s->end - at) > second.size && memcmp(at, second.data, second.size) == 0 && at[second.size] == '=';
        bool out_of_place =
            (s->seen & 1u << format->order[1]) || s->unclosed || is_prefix(name, rest, had_time ? second : time);
        if (!in_order || !out_of_place)
            return false;
    }
    s->cut = equals - time.size;
    return true;
}

/*
 * Returns whether the next record may begin at a name. This is the case if the name is the time field's name and this
 * record already has a time, or if the name is longer and ends with the time field's name.
 */
static inline bool may_be_next(const scan *s, nl_member member, const char *name, const char *equals)
{
    nl_string time = s->format->names[NL_MEMBER_TIME];
    if (member == NL_MEMBER_TIME)
        return (s->seen & 1u << NL_MEMBER_TIME) != 0;
    return equals[-1] == time.data[time.size - 1] && (size_t)(equals - name) > time.size &&
           memcmp(equals - time.size, time.data, time.size) == 0;
}

/* Closes the open field and reads the NAME= at s->at and its value, unless the next record begins there. */
static void text_read_field(scan *s, const char *equals)
{
    const char *name = s->at;
    nl_member member = nl_text_member(s->format, name, (size_t)(equals - name));
    if (may_be_next(s, member, name, equals) && begins_next_record(s, name, equals))
        return;
    close_field(s);
    open_field(s, name, equals, member);
}

/* Reads a word that is not NAME=. The word may contain a NAME= if a prefix touches the record: "stats:DATE=". */
static void text_read_other(scan *s)
{
    text_read_word(s);
    if (s->cut != NULL && s->seen == 0) {
        const char *time = s->cut;
        s->cut = NULL;
        open_field(s, time, time + s->format->names[NL_MEMBER_TIME].size, NL_MEMBER_TIME);
    }
    if (!s->open)
        s->value = NULL;
}

/* ---- plain fields: the fast path ---- */

static void text_move_window(scan *s, const char *at)
{
    window *w = &s->window;
    w->start = at;
    w->end = s->end - at < WINDOW ? s->end : at + WINDOW;
    for (uint64_t *stops = w->stops; at < w->end; at += 64) {
        char last[64];
        bool whole = s->limit - at >= 64;
        if (!whole)
            memcpy(last, at, (size_t)(w->end - at));
        uint64_t found = nl_find_stops(whole ? at : last);
        *stops++ = w->end - at >= 64 ? found : found & ((UINT64_C(1) << (w->end - at)) - 1);
    }
}

/* Returns the first blank or '='. If the window has neither of them, returns the window's end or a later position. */
static inline const char *next_stop(const window *w, const char *at)
{
    if (at >= w->end)
        return at;
    size_t place = (size_t)(at - w->start), word = place / 64;
    uint64_t left = w->stops[word] >> place % 64;
    if (left != 0)
        return at + __builtin_ctzll(left);
    for (at = w->start + 64 * ++word; at < w->end; at += 64, word++)
        if (w->stops[word] != 0)
            return at + __builtin_ctzll(w->stops[word]);
    return at;
}

/* A field that the fast path can read. */
typedef struct plain_field {
    const char *name, *equals, *stop;
    nl_member member;
    bool closer; /* the name needs the full checks */
} plain_field;

/* Stores the name for the next record. */
static void learn_name(const scan *s, const plain_field *f)
{
    size_t size = (size_t)(f->equals - f->name);
    nl_known_name *known = &s->known->names[s->place];
    if (size >= sizeof known->text || s->place == NL_KNOWN_NAMES || f->closer)
        return;
    *known = (nl_known_name){.size = (unsigned char)size, .member = (unsigned char)f->member};
    memcpy(known->text, f->name, size + 1);
}

/* Returns whether the previous record had the same name at the same index. If so, sets the members of f. */
static inline bool is_known_name(const scan *s, plain_field *f)
{
    const nl_known_name *known = &s->known->names[s->place];
    if (known->size == 0 || s->window.end - f->name <= known->size ||
        !nl_begins_as(f->name, known->text, known->size + 1u, s->limit))
        return false;
    f->equals = f->name + known->size;
    f->member = (nl_member)known->member;
    f->closer = f->member == NL_MEMBER_TIME && (s->seen & 1u << NL_MEMBER_TIME);
    return true;
}

/*
 * Like find_plain_name, for a name that the previous record did not have at this index. Not inlined, because it is
 * rarely called.
 */
static __attribute__((noinline)) bool find_new_name(const scan *s, plain_field *f)
{
    const char *at = f->name, *equals = next_stop(&s->window, at);
    if (equals >= s->window.end || *equals != '=' || !nl_byte_is(*at, NL_BYTE_NAME_FIRST) || *at == '_' ||
        nl_find_name_end(at, equals, s->limit) != equals)
        return false;
    f->equals = equals;
    f->member = nl_text_member(s->format, at, (size_t)(equals - at));
    f->closer = may_be_next(s, f->member, at, equals);
    learn_name(s, f);
    return true;
}

/*
 * Finds the '=' after the name at f->name and sets the members of f. Returns false if there is no NAME=, the name does
 * not end in the window, or a new name begins with '_', which may be an escape.
 */
static inline bool find_plain_name(const scan *s, plain_field *f)
{
    return is_known_name(s, f) || find_new_name(s, f);
}

/* Finds the end of the value. Returns whether the value is plain. */
static inline bool find_plain_value(const scan *s, plain_field *f)
{
    const char *value = f->equals + 1;
    f->stop = next_stop(&s->window, value);
    if (f->stop >= s->window.end) {
        if (s->window.end < s->end)
            return false;
        f->stop = s->end;
    }
    return f->stop > value && *value != '"' && (f->stop == s->end || *f->stop != '=') && !f->closer;
}

/* Finds a plain field at s->at. Moves the window if necessary. */
static bool find_plain_field(scan *s, plain_field *f)
{
    f->name = s->at;
    while (!find_plain_name(s, f) || !find_plain_value(s, f)) {
        if (s->window.end == s->end || f->name == s->window.start)
            return false;
        text_move_window(s, f->name);
    }
    return true;
}

/*
 * Reads fields like text_read_field, as long as they are plain. Leaves the last field open if the following text may
 * belong to its value.
 */
static void text_read_plain_fields(scan *s)
{
    plain_field f;
    if (!find_plain_field(s, &f))
        return;
    close_field(s);
    s->unclosed = s->escaped = false;
    for (bool plain = true; plain;) {
        nl_string name = {f.name, (size_t)(f.equals - f.name)}, value = {f.equals + 1, (size_t)(f.stop - f.equals - 1)};
        nl_member member = s->seen & 1u << f.member ? NL_MEMBER_NONE : f.member;
        s->seen |= 1u << f.member;
        s->place += s->place < NL_KNOWN_NAMES;
        s->at = f.name = nl_skip_blanks(f.stop, s->end);
        bool follows = f.name < s->end && find_plain_name(s, &f);
        if (!follows && s->at < s->end) {
            s->open = true;
            s->member = member;
            s->name = name;
            s->value = value.data;
            s->value_end = value.data + value.size;
            return;
        }
        put_field(s, member, name, value);
        plain = follows && find_plain_value(s, &f);
    }
}

/* Returns the names of the previous record, or an empty list if that record was in another format. */
static nl_known_names *known_names(nl_record *record, const nl_text_format *format)
{
    nl_known_names *known = &((nl_record_storage *)(void *)record)->known;
    if (known->format != format)
        *known = (nl_known_names){.format = format};
    return known;
}

/* Adds the missing leading zeros to the microseconds of START and END times (GridFTP). */
static void pad_times(scan *s)
{
    nl_record *record = s->record;
    for (size_t i = 0; i < record->field_count; i++) {
        nl_field *field = &((nl_record_storage *)(void *)record)->fields[i];
        const nl_string name = field->name, value = field->string;
        const bool is_time = nl_string_is(name, "START") || nl_string_is(name, "END");
        int64_t time_ns, plain_ns;
        if (!is_time || s->format->parse_time(value.data, value.size, s->fraction, &time_ns) != NL_OK ||
            s->format->parse_time(value.data, value.size, NL_FRACTION_DECIMAL, &plain_ns) != NL_OK ||
            time_ns == plain_ns)
            continue;
        char *padded = nl_record_allocate(record, NL_TIME_TEXT_SIZE);
        if (padded == NULL)
            return;
        nl_known_second unknown = {0};
        field->string = (nl_string){padded, s->format->put_time(time_ns, &unknown, padded)};
        record->raw = (nl_string){NULL, 0};
    }
}

static nl_status finish(scan *s)
{
    if (s->cut != NULL) {
        nl_error_set(NL_ERROR_INVALID, "incomplete record, followed by another record on the same line");
        return NL_MALFORMED;
    }
    if (!(s->seen & 1u << NL_MEMBER_TIME)) {
        nl_error_set(NL_ERROR_INVALID, "%s", s->format->no_time);
        return NL_MALFORMED;
    }
    if (s->bad_time) {
        nl_error_prepend("%s", s->format->names[NL_MEMBER_TIME].data);
        return NL_MALFORMED;
    }
    return NL_OK;
}

static nl_status text_decode(const nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                             const char *end, const char *limit, bool closely, size_t *used)
{
    /* Not fully initialized, because the window is large and is set before it is read. */
    scan s;
    s.format = format;
    s.record = record;
    s.fraction = fraction;
    s.at = line;
    s.end = end;
    s.limit = limit;
    s.cut = NULL;
    s.seen = 0;
    s.bad_time = s.open = s.escaped = s.unclosed = false;
    s.value = s.value_end = NULL;
    s.known = known_names(record, format);
    s.place = 0;
    text_move_window(&s, line);
    record->raw = (nl_string){line, (size_t)(end - line)};
    record->raw_format = format->format;
    while (s.cut == NULL && (s.at = nl_skip_blanks(s.at, end)) < end) {
        if (!closely)
            text_read_plain_fields(&s);
        if (s.at == end)
            break;
        const char *equals = find_equals(&s, s.at);
        if (equals != NULL)
            text_read_field(&s, equals);
        else
            text_read_other(&s);
    }
    *used = (size_t)((s.cut != NULL ? s.cut : end) - line);
    close_field(&s);
    if (fraction != NL_FRACTION_DECIMAL && !s.bad_time)
        pad_times(&s);
    if (record->raw.data == NULL)
        record->raw_format = NL_FORMAT_UNKNOWN;
    return finish(&s);
}

nl_status nl_text_decode_fields(const nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                                const char *end, const char *limit, size_t *used)
{
    return text_decode(format, record, fraction, line, end, limit, false, used);
}

nl_status nl_text_decode_closely(const nl_text_format *format, nl_record *record, nl_fraction fraction,
                                 const char *line, const char *end, const char *limit, size_t *used)
{
    if (format->decode != nl_text_decode_fields)
        return format->decode(format, record, fraction, line, end, limit, used);
    return text_decode(format, record, fraction, line, end, limit, true, used);
}
