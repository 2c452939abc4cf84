/*
 * logfmt: key=value pairs, which Go programs, Heroku and Prometheus write. See doc/text-formats.md.
 *
 *   time=2026-11-23T01:02:03.400000Z level=info host=a prog=b event=read msg="two words" bytes=4096
 *
 * Writing: the time field is time=, in ISO 8601 and UTC. Values are quoted as in ULM, but a control byte is written
 * \u00HH, which every reader of logfmt knows.
 *
 * Reading: a pair is KEY=VALUE without blanks. A value in double quotes has the escapes of Go. A word without '=' is a
 * key with the value "true". The time is in time=, ts= or t=, in ISO 8601 or as seconds since 1970 with ten digits and
 * an optional fraction. Heroku's lines have the time before the first pair, followed by the program and ':'. If the
 * value of time=, ts= or t= is not a time, the pair is an ordinary field. Two kinds of text that are not logfmt become
 * values, so that no byte is lost. These are the rest of the line after an unclosed quote, and a word that cannot be a
 * key.
 */
#include "config.h"

#include "base/error.h"
#include "base/text.h"
#include "base/time_internal.h"
#include "record/bytes.h"
#include "record/common_names.h"
#include "record/field_name.h"
#include "record/text.h"

#include <stdio.h>
#include <string.h>

enum { EPOCH_DIGITS = 10, CODE_POINT_MAX = 0x10ffff };

static const char *level_name(nl_level level)
{
    static const char *const names[] = {
        [NL_LEVEL_NONE] = "",   [NL_EMERGENCY] = "fatal",     [NL_ALERT] = "alert",       [NL_ERROR] = "error",
        [NL_WARNING] = "warn",  [NL_AUTH] = "auth",           [NL_SECURITY] = "security", [NL_USAGE] = "info",
        [NL_SYSTEM] = "system", [NL_IMPORTANT] = "important", [NL_DEBUG] = "debug",
    };
    return (unsigned)level < sizeof names / sizeof names[0] ? names[level] : "";
}

/* ---- pairs ---- */

/* A word of a line, which is a pair or only a key. */
typedef struct pair {
    nl_string key;   /* text before the first '='; the whole word if it has no '=' */
    nl_string value; /* text after the '=', without quotes; data is NULL if the word has no '=' */
    bool escaped;
    bool quoted;
} pair;

/* Returns the quote that closes the quote at `start`, or NULL. Sets *escaped to whether a backslash was found. */
static const char *find_closing_quote(const char *start, const char *end, const char *limit, bool *escaped)
{
    *escaped = false;
    for (const char *at = start + 1; at < end; at += 2) {
        at = nl_find_any(at, end, limit, '"', '\\', '"');
        if (at == end)
            return NULL;
        if (*at == '"')
            return at;
        *escaped = true;
    }
    return NULL;
}

/* Reads the word at *at and moves *at past it. */
static pair read_pair(const char **at, const char *end, const char *limit)
{
    const char *start = *at, *stop = nl_find_any(start, end, limit, ' ', '\t', '=');
    pair p = {.key = {start, (size_t)(stop - start)}};
    if (stop == end || *stop != '=') {
        *at = stop;
        return p;
    }
    const char *value = stop + 1, *close;
    if (stop == start) { /* "=word" counts as a key without a value, although it is not a valid name */
        *at = nl_find_any(value, end, limit, ' ', '\t', ' ');
        p.key.size = (size_t)(*at - start);
        return p;
    }
    if (value < end && *value == '"') {
        close = find_closing_quote(value, end, limit, &p.escaped);
        p.quoted = close != NULL;
        p.escaped = p.escaped && p.quoted;
        p.value =
            p.quoted ? (nl_string){value + 1, (size_t)(close - value - 1)} : (nl_string){value, (size_t)(end - value)};
        *at = p.quoted ? close + 1 : end;
        return p;
    }
    *at = nl_find_any(value, end, limit, ' ', '\t', ' ');
    p.value = (nl_string){value, (size_t)(*at - value)};
    return p;
}

/* ---- times ---- */

/* Returns whether text begins with an ISO 8601 time. A blank instead of T is valid in quotes. */
static bool is_iso_time(const char *text, const char *end)
{
    return nl_text_begins_with_day(text, end) && (text[10] == 'T' || text[10] == 't' || text[10] == ' ');
}

/* Returns whether the value can be the time of a record. Other pairs may also be named "t" or "time". */
static bool is_time(const pair *p)
{
    if (p->value.data == NULL || p->escaped)
        return false;
    const char *text = p->value.data, *end = text + p->value.size;
    if (is_iso_time(text, end))
        return true;
    size_t digits = nl_digits(text, p->value.size);
    if (digits != EPOCH_DIGITS)
        return false;
    text += digits;
    return text == end || (*text == '.' && nl_digits(text + 1, (size_t)(end - text - 1)) == (size_t)(end - text - 1));
}

static bool is_key(const pair *p, const char *key)
{
    return nl_string_is(p->key, key);
}

static bool is_time_key(const pair *p)
{
    return is_key(p, "time") || is_key(p, "ts") || is_key(p, "t");
}

static bool starts_record(const char *value, const char *end, bool within)
{
    (void)within;
    return is_iso_time(value, end);
}

/* ---- text before the first pair ---- */

/*
 * Words before the first pair: "2012-10-11T03:47:20+00:00 heroku[router]: at=info ...". If all these words are valid
 * keys, they are keys without values and not a prefix.
 */
typedef struct prefix {
    const char *end; /* start of the first pair; start of the line if there is no prefix */
    nl_string time;  /* a time in ISO 8601; data is NULL if the prefix has no time */
    nl_string prog;  /* the last word without its ':', if it ends with ':' */
    size_t word_count;
} prefix;

static prefix read_prefix(const char *line, const char *end, const char *limit)
{
    prefix found = {.end = line};
    bool all_keys = true;
    nl_string last = {0};
    for (const char *at = nl_skip_blanks(line, end); at < end; at = nl_skip_blanks(at, end)) {
        const char *start = at;
        pair p = read_pair(&at, end, limit);
        if (p.value.data != NULL) {
            if (all_keys)
                return (prefix){.end = line};
            found.end = start;
            if (last.size > 1 && last.data[last.size - 1] == ':')
                found.prog = (nl_string){last.data, last.size - 1};
            return found;
        }
        found.word_count++;
        last = p.key;
        all_keys = all_keys && nl_is_name(p.key);
        if (found.time.data == NULL && is_iso_time(p.key.data, p.key.data + p.key.size))
            found.time = p.key;
    }
    return (prefix){.end = line};
}

/* ---- detection ---- */

bool nl_logfmt_claims_ts(const char *line, const char *end)
{
    return !nl_text_has_field(line, end, "event") &&
           (nl_text_has_field(line, end, "msg") || nl_text_has_field(line, end, "caller"));
}

/*
 * Returns whether the line begins with its time. logfmt_detect checks other lines after all other formats have rejected
 * them.
 */
static bool confirm(const char *line, const char *end)
{
    if (line == end || *line != 't')
        return false;
    const char *at = line;
    pair p = read_pair(&at, end, end);
    return is_time_key(&p) && is_time(&p) && (!is_key(&p, "ts") || nl_logfmt_claims_ts(line, end));
}

/* Returns whether most words are pairs. Prose that begins with a time may also contain a pair. */
static bool are_most_words_pairs(const char *at, const char *end)
{
    size_t pairs = 0, others = 0;
    for (at = nl_skip_blanks(at, end); at < end; at = nl_skip_blanks(at, end)) {
        pair p = read_pair(&at, end, end);
        *(p.value.data != NULL ? &pairs : &others) += 1;
    }
    return pairs > others;
}

static bool logfmt_detect(const nl_text_format *format, const char *line, const char *end, nl_text_place where)
{
    (void)format;
    if (where != NL_TEXT_AT_FIELD)
        return false;
    for (const char *at = nl_skip_blanks(line, end); at < end; at = nl_skip_blanks(at, end)) {
        pair p = read_pair(&at, end, end);
        if (is_time_key(&p) && is_time(&p))
            return true;
    }
    prefix before = read_prefix(line, end, end);
    return before.time.data == nl_skip_blanks(line, end) && before.time.data != NULL && before.word_count <= 2 &&
           are_most_words_pairs(before.end, end);
}

/* ---- values ---- */

/* Reads exactly `count` digits in base 8 or 16. Returns false if the text has another form. */
static bool read_digits(const char *text, const char *end, unsigned count, unsigned base, uint32_t *value)
{
    if ((size_t)(end - text) < count)
        return false;
    *value = 0;
    for (unsigned i = 0; i < count; i++) {
        int digit = nl_hex_digit(text[i]);
        if (digit < 0 || (unsigned)digit >= base)
            return false;
        *value = *value * base + (unsigned)digit;
    }
    return true;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(first[more] | code >> 6 * more);
    while (more-- > 0)
        *to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return to;
}

/* Reads \uHHHH, or two such escapes that form a surrogate pair. Returns the size, or 0 if the escape is invalid. */
static size_t read_utf16(const char *text, const char *end, uint32_t *code)
{
    enum { HIGH = 0xd800, LOW = 0xdc00, LAST = 0xdfff, SIZE = 6 };
    uint32_t low;
    if (!read_digits(text + 2, end, 4, 16, code))
        return 0;
    if (*code < HIGH || *code > LAST)
        return SIZE;
    if (*code >= LOW || end - text < 2 * SIZE || text[SIZE] != '\\' || text[SIZE + 1] != 'u' ||
        !read_digits(text + SIZE + 2, end, 4, 16, &low) || low < LOW || low > LAST)
        return 0;
    *code = 0x10000 + ((*code - HIGH) << 10) + (low - LOW);
    return 2 * SIZE;
}

/*
 * Writes to `to` the character that the escape at *at denotes, and moves *at past the escape. If the escape is
 * unknown, copies only its backslash. Returns the end of the written bytes, which are never longer than the escape.
 */
static char *put_unescaped(char *to, const char **at, const char *end)
{
    static const char letters[][2] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'},  {'a', '\a'},  {'b', '\b'}, {'f', '\f'},
                                      {'v', '\v'}, {'"', '"'},  {'\\', '\\'}, {'\'', '\''}, {'/', '/'}};
    const char *text = *at;
    char kind = end - text > 1 ? text[1] : '\0';
    uint32_t code;
    size_t size = 0;
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (kind == letters[i][0]) {
            *to++ = letters[i][1];
            *at = text + 2;
            return to;
        }
    }
    if (kind == 'u')
        size = read_utf16(text, end, &code);
    else if (kind == 'U' && read_digits(text + 2, end, 8, 16, &code) && code <= CODE_POINT_MAX &&
             (code < 0xd800 || code > 0xdfff))
        size = 10;
    if (size > 0) {
        *at = text + size;
        return put_utf8(to, code);
    }
    if (kind == 'x' && read_digits(text + 2, end, 2, 16, &code))
        size = 4;
    else if (end - text > 1 && read_digits(text + 1, end, 3, 8, &code) && code <= 0xff)
        size = 4;
    *to++ = size > 0 ? (char)code : '\\';
    *at = text + (size > 0 ? size : 1);
    return to;
}

static nl_string unescape(nl_record *record, nl_string value)
{
    const char *at = value.data, *end = at + value.size;
    char *data = nl_record_allocate(record, value.size), *to = data;
    if (data == NULL)
        return (nl_string){"", 0};
    while (at < end) {
        if (*at == '\\')
            to = put_unescaped(to, &at, end);
        else
            *to++ = *at++;
    }
    return (nl_string){data, (size_t)(to - data)};
}

/* ---- records ---- */

typedef struct reading {
    nl_record *record;
    nl_fraction fraction;
    unsigned seen;        /* set of the standard members that were read so far */
    const char *time_key; /* key of the time, or NULL */
    bool time_is_in_prefix;
    bool time_is_bad; /* the time is invalid; the reason is this thread's error */
} reading;

static void read_time(reading *r, nl_string text)
{
    nl_record *record = r->record;
    r->seen |= 1u << NL_MEMBER_TIME;
    if (nl_time_parse(text.data, text.size, r->fraction, &record->time_ns) != NL_OK) {
        r->time_is_bad = true;
        return;
    }
    int64_t plain_ns;
    if (r->fraction != NL_FRACTION_DECIMAL &&
        (nl_time_parse(text.data, text.size, NL_FRACTION_DECIMAL, &plain_ns) != NL_OK || plain_ns != record->time_ns))
        record->raw = (nl_string){NULL, 0}; /* with the default nl_fraction, the text would result in another time */
}

static bool is_level(nl_string text)
{
    return nl_level_parse(text.data, text.size) != NL_LEVEL_NONE;
}

/* Returns the standard member for a pair. Programs that write t= write lvl=, and Heroku writes at=. */
static nl_member member_of(const reading *r, const pair *p)
{
    bool has_time = r->time_key != NULL;
    nl_member found = nl_text_member(&nl_logfmt, p->key.data, p->key.size);
    if (!has_time && is_time_key(p) && is_time(p))
        found = NL_MEMBER_TIME;
    else if (found == NL_MEMBER_TIME || p->value.data == NULL)
        found = NL_MEMBER_NONE;
    else if (has_time && strcmp(r->time_key, "t") == 0 && is_key(p, "lvl"))
        found = NL_MEMBER_LEVEL;
    else if (!has_time && r->time_is_in_prefix && is_key(p, "at") && is_level(p->value))
        found = NL_MEMBER_LEVEL;
    return found != NL_MEMBER_NONE && found != NL_MEMBER_TIME && (r->seen & 1u << found) ? NL_MEMBER_NONE : found;
}

/* Removes the "_." that a writer put before the key, as the writer of BP does for "ts". */
static nl_string unescape_key(const reading *r, nl_string key)
{
    nl_string bare = key;
    while (bare.size > 2 && bare.data[0] == '_' && bare.data[1] == '.')
        bare = (nl_string){bare.data + 2, bare.size - 2};
    if (bare.size == key.size)
        return key;
    nl_member found = nl_text_member(&nl_logfmt, bare.data, bare.size);
    bool is_time =
        r->time_key != NULL && bare.size == strlen(r->time_key) && memcmp(bare.data, r->time_key, bare.size) == 0;
    bool escaped = is_time || (found != NL_MEMBER_NONE && found != NL_MEMBER_TIME);
    return escaped ? (nl_string){key.data + 2, key.size - 2} : key;
}

/* Converts a key to a valid field name. */
static nl_string logfmt_name_of(reading *r, nl_string key)
{
    if (nl_is_name(key))
        return key.data[0] == '_' ? unescape_key(r, key) : key;
    char *name = nl_record_allocate(r->record, key.size);
    if (name == NULL)
        return (nl_string){"", 0};
    memcpy(name, key.data, key.size);
    nl_name_make_valid(name, key.size);
    return (nl_string){name, key.size};
}

static void put_level(nl_record *record, nl_string text)
{
    record->level = nl_level_parse(text.data, text.size);
    const char *own = level_name(record->level);
    if (record->level != NL_LEVEL_NONE && nl_string_is(text, own))
        text = (nl_string){nl_level_name(record->level), strlen(nl_level_name(record->level))};
    record->level_text = text;
}

static void put_pair(reading *r, const pair *p)
{
    nl_record *record = r->record;
    nl_member found = member_of(r, p);
    r->seen |= 1u << found;
    if (found == NL_MEMBER_TIME) {
        r->time_key = is_key(p, "time") ? "time" : is_key(p, "ts") ? "ts" : "t";
        read_time(r, p->value);
        return;
    }
    nl_string value = p->escaped ? unescape(record, p->value) : p->value;
    if (found == NL_MEMBER_LEVEL) {
        put_level(record, value);
    } else if (found != NL_MEMBER_NONE) {
        *(found == NL_MEMBER_HOST ? &record->host : found == NL_MEMBER_PROG ? &record->prog : &record->event) = value;
    } else {
        static const char yes[] = "true";
        if (p->value.data == NULL)
            value = nl_is_name(p->key) ? (nl_string){yes, sizeof yes - 1} : p->key;
        nl_string name = logfmt_name_of(r, p->key);
        nl_field *field = nl_record_append(record);
        if (field == NULL)
            return;
        field->name = name;
        field->type = NL_TYPE_STRING;
        field->string = value;
    }
}

static nl_status finish(const reading *r)
{
    if (!(r->seen & 1u << NL_MEMBER_TIME)) {
        nl_error_set(NL_ERROR_INVALID, "%s", nl_logfmt.no_time);
        return NL_MALFORMED;
    }
    if (r->time_is_bad) {
        nl_error_prepend("time");
        return NL_MALFORMED;
    }
    return NL_OK;
}

static nl_status logfmt_decode(const nl_text_format *format, nl_record *record, nl_fraction fraction, const char *line,
                               const char *end, const char *limit, size_t *used)
{
    reading r = {.record = record, .fraction = fraction};
    record->raw = (nl_string){line, (size_t)(end - line)};
    prefix before = read_prefix(line, end, limit);
    r.time_is_in_prefix = before.time.data != NULL;
    for (const char *at = nl_skip_blanks(before.end, end); at < end; at = nl_skip_blanks(at, end)) {
        pair p = read_pair(&at, end, limit);
        put_pair(&r, &p);
    }
    if (!(r.seen & 1u << NL_MEMBER_TIME) && r.time_is_in_prefix)
        read_time(&r, before.time);
    if (record->prog.data == NULL)
        record->prog = before.prog;
    nl_record_use_common_names(record);
    record->raw_format = record->raw.data != NULL ? format->format : NL_FORMAT_UNKNOWN;
    *used = (size_t)(end - line);
    return finish(&r);
}

const nl_text_format nl_logfmt = {
    .format = NL_FORMAT_LOGFMT,
    .confirm = confirm,
    .iso_time = true,
    .names =
        {
            [NL_MEMBER_TIME] = {"time", 4},
            [NL_MEMBER_HOST] = {"host", 4},
            [NL_MEMBER_PROG] = {"prog", 4},
            [NL_MEMBER_LEVEL] = {"level", 5},
            [NL_MEMBER_EVENT] = {"event", 5},
        },
    .order = {NL_MEMBER_TIME, NL_MEMBER_LEVEL, NL_MEMBER_HOST, NL_MEMBER_PROG, NL_MEMBER_EVENT},
    .no_time = "no time=, ts= or t= field with a time",
    .hex_escape = "\\u00",
    .parse_time = nl_time_parse,
    .put_time = nl_time_put_iso,
    .level_name = level_name,
    .starts_record = starts_record,
    .detect = logfmt_detect,
    .decode = logfmt_decode,
};

const nl_format_info nl_logfmt_info = {
    .format = NL_FORMAT_LOGFMT,
    .name = "logfmt",
    .description = "logfmt text: time=... level=... msg=..., written by Go programs, Heroku and Prometheus",
    .suffix = ".logfmt",
    .suffix_is_format = true,
    .media_type = "text/plain; charset=utf-8",
    .text = &nl_logfmt,
};
