#include "config.h"

#include "convert/json_scan.h"

#include "base/text.h"
#include "convert/json_text.h"

#include <endian.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

bool json_fail(json_scan *j, const char *error)
{
    if (j->error == NULL)
        j->error = error;
    j->at = j->end;
    return false;
}

/* ---- strings ---- */

static int hex4(const char *at, const char *end)
{
    int code = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

/*
 * Decodes the digits after \u, and the second half of a surrogate pair, to UTF-8. Returns the end of the result, or
 * NULL if the escape is malformed.
 */
static char *unescape_code(const char **at, const char *end, char *to)
{
    int code = hex4(*at, end);
    if (code < 0)
        return NULL;
    *at += 4;
    if (code >= 0xd800 && code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int low = hex4(*at + 2, end);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
            *at += 6;
        }
    }
    return put_utf8(to, (unsigned)code);
}

/* Decodes an escape after its backslash. Returns the end of the result, or NULL if the escape is malformed. */
static char *unescape(const char **at, const char *end, char *to)
{
    static const char letters[][2] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'n', '\n'},
                                      {'t', '\t'}, {'r', '\r'},  {'b', '\b'}, {'f', '\f'}};
    char letter = **at;
    ++*at;
    if (letter == 'u')
        return unescape_code(at, end, to);
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (letter == letters[i][0]) {
            *to = letters[i][1];
            return to + 1;
        }
    }
    return NULL;
}

/*
 * Decodes a string whose first escape is at `from`. Returns false on failure. Not inlined, because most strings have
 * no escapes.
 */
static __attribute__((noinline)) bool unescape_string(json_scan *j, const char *start, const char *from,
                                                      nl_string *string)
{
    const char *close = from;
    while (close < j->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= j->end)
        return json_fail(j, "a string has no closing quote");
    char *bytes = j->allocate(j->user, (size_t)(close - start));
    if (bytes == NULL)
        return json_fail(j, "strings are too long");
    memcpy(bytes, start, (size_t)(from - start));
    char *to = bytes + (from - start);
    while (from < close) {
        if ((unsigned char)*from < ' ')
            return json_fail(j, "a string contains a control character");
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        to = unescape(&from, close, to);
        if (to == NULL)
            return json_fail(j, "a string contains an invalid escape");
    }
    *string = (nl_string){bytes, (size_t)(to - bytes)};
    j->at = close + 1;
    return true;
}

/* Returns the position of the first byte that is '"', '\\' or a control character, or `end`. */
static const char *skip_plain(const char *at, const char *end)
{
#ifdef __SSE2__
    const __m128i quotes = _mm_set1_epi8('"'), backslashes = _mm_set1_epi8('\\'), highest = _mm_set1_epi8(' ' - 1);
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i equal = _mm_or_si128(_mm_cmpeq_epi8(bytes, quotes), _mm_cmpeq_epi8(bytes, backslashes));
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, highest), bytes);
        unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(equal, low));
        if (found != 0)
            return at + __builtin_ctz(found);
    }
#else
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    for (uint64_t word; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        word = le64toh(word);
        uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
        uint64_t low = (word - ones * ' ') & ~word;
        uint64_t found = (low | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & highs;
        if (found != 0) /* only the lowest set bit is reliable, because subtraction borrows */
            return at + __builtin_ctzll(found) / 8;
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= ' ')
        at++;
    return at;
}

bool json_string(json_scan *j, nl_string *string)
{
    if (!json_take(j, '"'))
        return json_fail(j, "expected a string");
    const char *start = j->at, *at = skip_plain(start, j->end);
    if (at == j->end)
        return json_fail(j, "a string has no closing quote");
    if (*at == '\\')
        return unescape_string(j, start, at, string);
    if (*at != '"')
        return json_fail(j, "a string contains a control character");
    *string = (nl_string){start, (size_t)(at - start)};
    j->at = at + 1;
    return true;
}

bool json_key(json_scan *j, nl_string *key)
{
    return json_string(j, key) && (json_take(j, ':') || json_fail(j, "expected : after a member's name"));
}

/* ---- other values ---- */

static const char *digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

bool json_number(json_scan *j, nl_string *text)
{
    json_blank(j);
    const char *start = j->at, *at = start, *part;
    if (at < j->end && *at == '-')
        at++;
    part = at;
    at = digits(at, j->end);
    bool good = at > part && !(*part == '0' && at - part > 1);
    if (good && at < j->end && *at == '.') {
        part = at + 1;
        at = digits(part, j->end);
        good = at > part;
    }
    if (good && at < j->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < j->end && (*at == '+' || *at == '-'))
            at++;
        part = at;
        at = digits(at, j->end);
        good = at > part;
    }
    if (!good)
        return json_fail(j, "expected a value");
    *text = (nl_string){start, (size_t)(at - start)};
    j->at = at;
    return true;
}

bool json_word(json_scan *j, const char *word)
{
    json_blank(j);
    size_t size = strlen(word);
    if ((size_t)(j->end - j->at) < size || memcmp(j->at, word, size) != 0)
        return json_fail(j, "expected a value");
    j->at += size;
    return true;
}

bool json_next(json_scan *j, char close, bool *first)
{
    if (j->error != NULL)
        return false;
    if (json_take(j, close))
        return false;
    if (!*first && !json_take(j, ','))
        return json_fail(j, close == '}' ? "expected , or }" : "expected , or ]");
    *first = false;
    return true;
}

/* Validates a string like json_string, without decoding it. */
static bool skip_string(json_scan *j)
{
    char ignored[8];
    if (!json_take(j, '"'))
        return json_fail(j, "expected a string");
    for (const char *at = skip_plain(j->at, j->end); at < j->end; at = skip_plain(at, j->end)) {
        if (*at == '"') {
            j->at = at + 1;
            return true;
        }
        if (*at != '\\')
            return json_fail(j, "a string contains a control character");
        at++;
        if (at < j->end && unescape(&at, j->end, ignored) == NULL)
            return json_fail(j, "a string contains an invalid escape");
    }
    return json_fail(j, "a string has no closing quote");
}

static bool any(json_scan *j, int depth)
{
    nl_string ignored;
    bool first = true;
    if (depth > JSON_DEPTH)
        return json_fail(j, "arrays and objects are nested too deeply");
    switch (json_peek(j)) {
    case '"':
        return skip_string(j);
    case '{':
        j->at++;
        while (json_next(j, '}', &first) && skip_string(j) &&
               (json_take(j, ':') || json_fail(j, "expected : after a member's name")) && any(j, depth + 1))
            ;
        return j->error == NULL;
    case '[':
        j->at++;
        while (json_next(j, ']', &first) && any(j, depth + 1))
            ;
        return j->error == NULL;
    case 't':
        return json_word(j, "true");
    case 'f':
        return json_word(j, "false");
    case 'n':
        return json_word(j, "null");
    default:
        return json_number(j, &ignored);
    }
}

bool json_any(json_scan *j, nl_string *text)
{
    json_blank(j);
    const char *start = j->at;
    if (!any(j, 1))
        return false;
    *text = (nl_string){start, (size_t)(j->at - start)};
    return true;
}

/* ---- numbers ---- */

bool json_unsigned(nl_string text, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(text.data[i] - '0'), value))
            return false;
    return text.size > 0;
}

/*
 * Sets a field to an integer. Returns false if the text is not an integer, or is not the text that a writer would
 * produce for this integer.
 */
static bool integer_value(nl_string text, nl_field *field)
{
    bool negative = text.size > 0 && text.data[0] == '-';
    uint64_t digits;
    if (!json_unsigned((nl_string){text.data + negative, text.size - negative}, &digits) ||
        (digits == 0 && text.size > 1) || (negative && digits > UINT64_C(1) << 63))
        return false;
    if (negative || digits <= INT64_MAX) {
        field->type = NL_TYPE_INT;
        field->int_value = negative ? -(int64_t)(digits - 1) - 1 : (int64_t)digits;
    } else {
        field->type = NL_TYPE_UINT;
        field->uint_value = digits;
    }
    return true;
}

/* Like integer_value, for a double. Not inlined, to save stack in the common case. */
static __attribute__((noinline)) bool double_value(nl_string text, nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE + 2];
    nl_field number = {.type = NL_TYPE_DOUBLE}, as_text = {.type = NL_TYPE_STRING, .string = text};
    if (!nl_field_double(&as_text, &number.double_value) || !nl_string_equals(json_double_text(&number, scratch), text))
        return false;
    field->type = NL_TYPE_DOUBLE;
    field->double_value = number.double_value;
    return true;
}

void json_number_value(nl_string text, nl_field *field)
{
    if (integer_value(text, field) || double_value(text, field))
        return;
    field->type = NL_TYPE_STRING;
    field->string = text;
}
