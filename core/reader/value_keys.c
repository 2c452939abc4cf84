#include "config.h"

#include "reader/value_keys.h"

#include "base/buffer.h"
#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "filter/filter_internal.h"
#include "record/block_read.h"
#include "record/bytes.h"
#include "record/format.h"
#include "record/text.h"

#include <endian.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SEED UINT64_C(0x2545f4914f6cdd1d)
#define NUMBER_SEED UINT64_C(0x9fb21c651e98df25)

/* ---- keys ---- */

/* Like hash_bytes, but equal on all processors, because the hash is stored in files. */
static uint64_t value_hash(uint64_t seed, const char *data, size_t size)
{
    uint64_t hash = seed ^ size, word;
    for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = hash_mix(hash ^ le64toh(word), UINT64_C(0x9e3779b97f4a7c15));
    }
    word = 0;
    memcpy(&word, data, size);
    return hash_mix(hash ^ le64toh(word), UINT64_C(0xd6e8feb86659fd93));
}

uint64_t nl_value_seed(nl_string name)
{
    return value_hash(SEED, name.data, name.size);
}

/* Returns the key of a number. Equal numbers have equal keys, whatever their kinds are. */
static uint64_t key_of_number(uint64_t seed, nl_number number)
{
    uint64_t bits = (uint64_t)number.integer, kind = number.kind;
    if (number.kind == NL_NUMBER_LARGE)
        bits = number.large;
    if (number.kind == NL_NUMBER_REAL) {
        double real = number.real;
        if (real >= -0x1p63 && real < 0x1p63 && (double)(int64_t)real == real) {
            bits = (uint64_t)(int64_t)real;
            kind = NL_NUMBER_INTEGER;
        } else if (real >= 0x1p63 && real < 0x1p64) {
            bits = (uint64_t)real;
            kind = NL_NUMBER_LARGE;
        } else {
            memcpy(&bits, &real, sizeof bits);
        }
    }
    return hash_mix(hash_mix(seed ^ NUMBER_SEED, kind) ^ bits, UINT64_C(0xd6e8feb86659fd93));
}

static bool is_in_number(char c)
{
    return (unsigned char)(c - '0') <= 9 || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

/* Returns the number that a text represents. Recognizes most texts that are not numbers quickly, such as trace IDs. */
static nl_number value_read_number(nl_string text)
{
    size_t size = 0;
    while (size < text.size && is_in_number(text.data[size]))
        size++;
    bool special = size <= 1 && text.size <= 9; /* "-infinity" */
    if (size < text.size && !special)
        return (nl_number){.kind = NL_NUMBER_NONE};
    return nl_number_read(text);
}

static uint64_t key_of_text(uint64_t seed, nl_string text)
{
    nl_number number = value_read_number(text);
    return number.kind != NL_NUMBER_NONE ? key_of_number(seed, number) : value_hash(seed, text.data, text.size);
}

uint64_t nl_value_key_of_operand(uint64_t seed, const nl_filter *filter, size_t index)
{
    const nl_operand *operand = &filter->operands[index];
    return operand->number.kind != NL_NUMBER_NONE ? key_of_number(seed, operand->number)
                                                  : key_of_text(seed, operand->text);
}

/* ---- collecting ---- */

/* Returns whether a name, without its prefixes "_.", is the name of a standard field. */
static bool is_special_name(nl_string name)
{
    while (name.size > 2 && name.data[0] == '_' && name.data[1] == '.')
        name = (nl_string){name.data + 2, name.size - 2};
    return nl_member_of_name(name) != NL_MEMBER_NONE;
}

bool nl_value_fields_add(nl_value_fields *fields, const char *name, size_t size)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strlen(fields->names[i]) == size && memcmp(fields->names[i], name, size) == 0)
            return true;
    if (size == 0 || size > NL_VALUE_NAME_MAX || fields->count == NL_VALUE_FIELDS_MAX ||
        is_special_name((nl_string){name, size}))
        return false;
    memcpy(fields->names[fields->count], name, size);
    fields->names[fields->count++][size] = '\0';
    return true;
}

void nl_value_keys_begin(nl_value_keys *k, const nl_value_fields *fields)
{
    k->fields = *fields;
    for (size_t i = 0; i < fields->count; i++) {
        k->names[i] = nl_string_of(k->fields.names[i]);
        k->seeds[i] = nl_value_seed(k->names[i]);
    }
    nl_value_keys_clear(k);
}

void nl_value_keys_free(nl_value_keys *k)
{
    nl_buffer_free(&k->keys);
    nl_record_free(k->scratch);
    *k = (nl_value_keys){0};
}

static void put_key(nl_value_keys *k, uint64_t key)
{
    if (key == k->latest)
        return;
    k->latest = key;
    if (k->keys.capacity - k->keys.size < sizeof key && !nl_buffer_reserve(&k->keys, sizeof key)) {
        k->unknown = true;
        return;
    }
    memcpy(k->keys.data + k->keys.size, &key, sizeof key);
    k->keys.size += sizeof key;
}

static void value_keys_add_field(void *user, size_t name, const nl_field *field)
{
    nl_value_keys *k = user;
    const uint64_t seed = k->seeds[name];
    char scratch[NL_FIELD_TEXT_SIZE];
    switch (field->type) {
    case NL_TYPE_STRING:
        put_key(k, key_of_text(seed, field->string));
        break;
    case NL_TYPE_INT:
        put_key(k, key_of_number(seed, (nl_number){.kind = NL_NUMBER_INTEGER, .integer = field->int_value}));
        break;
    case NL_TYPE_UINT:
        put_key(k, key_of_number(seed, nl_number_of_uint(field->uint_value)));
        break;
    case NL_TYPE_DOUBLE: /* a test compares an operand in quotes with the text of the double, so the text also needs a
                            key */
        put_key(k, key_of_number(seed, (nl_number){.kind = NL_NUMBER_REAL, .real = field->double_value}));
        put_key(k, key_of_text(seed, nl_field_text(field, scratch)));
        break;
    case NL_TYPE_BOOL:
        put_key(k, key_of_text(seed, nl_field_text(field, scratch)));
        break;
    }
}

void nl_value_keys_add_record(nl_value_keys *k, const nl_record *record)
{
    for (size_t i = 0; i < record->field_count && k->fields.count > 0; i++)
        for (size_t name = 0; name < k->fields.count; name++)
            if (record->fields[i].name.size == k->names[name].size &&
                memcmp(record->fields[i].name.data, k->names[name].data, k->names[name].size) == 0)
                value_keys_add_field(k, name, &record->fields[i]);
}

void nl_value_keys_add_block(nl_value_keys *k, const nl_block_reader *reader)
{
    if (k->fields.count > 0 && !nl_block_walk_values(reader, k->names, k->fields.count, value_keys_add_field, k))
        k->unknown = true;
}

/* ---- lines ---- */

typedef struct lines_scan {
    nl_value_keys *k;
    nl_format format;
    const char *text, *end;
} lines_scan;

/* Decodes the whole line around a position, for a value with bytes that are not simple (is_simple). */
static void add_decoded_line(const lines_scan *s, const char *at)
{
    nl_value_keys *k = s->k;
    const char *line = memrchr(s->text, '\n', (size_t)(at - s->text));
    line = line != NULL ? line + 1 : s->text;
    const char *end = memchr(at, '\n', (size_t)(s->end - at));
    end = end != NULL ? end : s->end;
    if (k->scratch == NULL)
        k->scratch = nl_record_new();
    if (k->scratch != NULL &&
        nl_record_decode(k->scratch, s->format, NL_FRACTION_DECIMAL, line, (size_t)(end - line)) == NL_OK)
        nl_value_keys_add_record(k, k->scratch);
    else
        k->unknown = true;
}

static bool is_simple(char c)
{
    return (unsigned char)c > ' ' && c != '=' && c != '"' && c != '\\' && c != 127;
}

/* Returns the first byte that is not simple (is_simple), or `end`. */
static const char *skip_simple(const char *at, const char *end)
{
#ifdef __SSE2__
    const __m128i blank = _mm_set1_epi8(' '), equals = _mm_set1_epi8('='), quote = _mm_set1_epi8('"'),
                  escape = _mm_set1_epi8('\\'), delete = _mm_set1_epi8(127);
    for (; end - at >= 16; at += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i other = _mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes);
        other = _mm_or_si128(other, _mm_cmpeq_epi8(bytes, equals));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(bytes, quote));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(bytes, escape));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(bytes, delete));
        const unsigned found = (unsigned)_mm_movemask_epi8(other);
        if (found != 0)
            return at + __builtin_ctz(found);
    }
#endif
    while (at < end && is_simple(*at))
        at++;
    return at;
}

/* Returns whether the end of the line follows, or blanks and NAME=. A value without quotes ends there. */
static bool value_ends(const char *at, const char *end)
{
    if (at < end && *at != '\n' && !nl_byte_is_blank(*at))
        return false;
    while (at < end && nl_byte_is_blank(*at))
        at++;
    if (at == end || *at == '\n')
        return true;
    const char *equals = nl_find_name_end(at, end, end);
    return equals < end && *equals == '=' && nl_byte_is(*at, NL_BYTE_NAME_FIRST);
}

/* Adds the value at `at` of a field. Almost every value is one word, possibly in quotes, before the next NAME=. */
static void value_keys_add_text(const lines_scan *s, size_t name, const char *at)
{
    bool quoted = at < s->end && *at == '"';
    const char *value = at + quoted, *end = skip_simple(value, s->end);
    if (quoted ? end < s->end && *end == '"' && value_ends(end + 1, s->end) : end > value && value_ends(end, s->end))
        put_key(s->k, key_of_text(s->k->seeds[name], (nl_string){value, (size_t)(end - value)}));
    else
        add_decoded_line(s, at);
}

/* Adds the value if a field with this name begins at `at`. The name and '=' are before the end of the text. */
static void value_keys_try(const lines_scan *s, size_t name, const char *at)
{
    nl_string text = s->k->names[name];
    if (memcmp(at, text.data, text.size) == 0 && at[text.size] == '=' &&
        (at == s->text || nl_byte_is_blank(at[-1]) || at[-1] == '\n'))
        value_keys_add_text(s, name, at + text.size + 1);
}

static void value_keys_find(const lines_scan *s, size_t name)
{
    const nl_string text = s->k->names[name];
    const char *at = s->text;
    for (; (at = nl_find_pair(at, s->end, text.size, text.data[0], '=')) < s->end; at++)
        value_keys_try(s, name, at);
}

void nl_value_keys_add_lines(nl_value_keys *k, nl_format format, const char *text, size_t size)
{
    const lines_scan s = {k, format, text, text + size};
    k->unknown = k->unknown || !nl_format_get_info(format)->only_pairs;
    for (size_t name = 0; name < k->fields.count; name++)
        value_keys_find(&s, name);
}
