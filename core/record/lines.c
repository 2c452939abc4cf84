#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/time_internal.h"
#include "record/bytes.h"
#include "record/text.h"
#include "record/line_scanner.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 64, /* bytes that are checked together */
    YEAR_DIGITS = 4,
    FRACTION_DIGITS = 9,
    SHORT_FRACTION = 6,      /* number of digits; a shorter fraction may be a number of microseconds */
    LONGEST_PLAIN = 1 << 20, /* bytes; longer lines are not plain */
};

struct nl_line_scanner {
    const nl_text_format *format;
    nl_fraction fraction;
    nl_string time;      /* name of the time field */
    uint64_t begin_word; /* the name of the time field and '='; begin_mask selects the bytes to compare */
    uint64_t begin_mask;
    bool met_nul;
    bool iso;
    uint64_t day_word; /* first eight bytes of the known day; 0 if no day is known */
    uint16_t day_rest; /* last two bytes of a known day in ISO 8601 */
    int64_t day_ns;
};

static uint16_t load_half(const char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return half;
}

nl_line_scanner *nl_line_scanner_new(nl_format format, nl_fraction fraction)
{
    const nl_text_format *text = nl_text_format_of(format);
    NL_REQUIRE(text != NULL, "not a text format", NULL);
    nl_line_scanner *scanner = nl_memory_check(calloc(1, sizeof *scanner));
    if (scanner == NULL)
        return NULL;
    scanner->format = text;
    scanner->fraction = fraction;
    scanner->time = text->names[NL_MEMBER_TIME];
    scanner->iso = text->iso_time;
    unsigned char begin[sizeof(uint64_t)] = {0}, mask[sizeof(uint64_t)] = {0};
    memcpy(begin, scanner->time.data, scanner->time.size);
    begin[scanner->time.size] = '=';
    memset(mask, 0xff, scanner->time.size + 1);
    scanner->begin_word = nl_text_load_word((const char *)begin);
    scanner->begin_mask = nl_text_load_word((const char *)mask);
    return scanner;
}

void nl_line_scanner_free(nl_line_scanner *scanner)
{
    free(scanner);
}

bool nl_line_scanner_met_nul(const nl_line_scanner *scanner)
{
    return scanner->met_nul;
}

/* ---- times of plain lines ---- */

static bool is_digit(char byte)
{
    return (unsigned char)(byte - '0') <= 9;
}

/* Returns the value of two digits. Sets *good to false if the bytes are not digits or the value exceeds a maximum. */
static unsigned scanner_read_two(const char *text, unsigned maximum, bool *good)
{
    unsigned value = (unsigned)(text[0] - '0') * 10 + (unsigned)(text[1] - '0');
    *good &= is_digit(text[0]) && is_digit(text[1]) && value <= maximum;
    return value;
}

/* Sets the known day to the day at `text`. Returns false if the text is not a valid day. */
static bool know_day(nl_line_scanner *s, const char *text)
{
    if (!nl_time_parse_day(text, s->iso, &s->day_ns))
        return false;
    s->day_word = nl_text_load_word(text);
    s->day_rest = s->iso ? load_half(text + 8) : 0;
    return true;
}

static bool is_known_day(const nl_line_scanner *s, const char *text)
{
    return nl_text_load_word(text) == s->day_word && (!s->iso || load_half(text + 8) == s->day_rest);
}

/* Reads all digits of a fraction and moves *at past them. Returns the fraction in nanoseconds. */
static unsigned scanner_read_fraction(const char **at, const char *end)
{
    unsigned value = 0, count = 0;
    const char *digit = *at;
    for (; digit < end && is_digit(*digit); digit++)
        if (count < FRACTION_DIGITS) {
            value = value * 10 + (unsigned)(*digit - '0');
            count++;
        }
    *at = digit;
    static const unsigned scale[] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
    return count == 0 ? 0 : value * scale[count];
}

/* Reads a time in the form of a plain line and moves *at past it. Returns false if the text has another form. */
static bool scanner_read_time(nl_line_scanner *s, const char **at, const char *end, int64_t *time_ns)
{
    bool iso = s->iso, good = true;
    const char *text = *at;
    size_t day_size = iso ? 10 : 8, second = iso ? 19 : 14;
    if ((size_t)(end - text) < second || (!is_known_day(s, text) && !know_day(s, text)))
        return false;
    const char *clock = text + day_size + iso;
    unsigned step = iso ? 3 : 2;
    unsigned seconds = scanner_read_two(clock, 23, &good) * 3600 + scanner_read_two(clock + step, 59, &good) * 60 +
                       scanner_read_two(clock + 2 * step, 59, &good);
    if (iso)
        good = good && text[10] == 'T' && text[13] == ':' && text[16] == ':';
    if (!good)
        return false;
    text += second;
    unsigned ns = 0;
    if (text < end && *text == '.') {
        const char *digits = ++text;
        ns = scanner_read_fraction(&text, end);
        if (s->fraction != NL_FRACTION_DECIMAL && text - digits < SHORT_FRACTION)
            return false;
    }
    if (iso && (text == end || *text++ != 'Z'))
        return false;
    *at = text;
    *time_ns = s->day_ns + (int64_t)seconds * NL_NS_PER_SECOND + ns;
    return true;
}

/* ---- lines ---- */

/* Returns whether a time that was read up to `at` is complete: only blanks follow, or blanks and NAME=. */
static bool time_ends(const char *at, const char *end, const char *limit)
{
    if (at == end)
        return true;
    if (!nl_byte_is_blank(*at))
        return false;
    while (at < end && nl_byte_is_blank(*at))
        at++;
    if (at == end)
        return true;
    const char *equals = nl_find_name_end(at, end, limit);
    return equals < end && *equals == '=' && nl_byte_is(*at, NL_BYTE_NAME_FIRST);
}

/* Returns whether the line may have a START= or END= time that the decoder must pad (see pad_times in text.c). */
static bool may_need_padding(const nl_line_scanner *s, const char *line, size_t size)
{
    return s->fraction != NL_FRACTION_DECIMAL &&
           (memmem(line, size, "START=", 6) != NULL || memmem(line, size, "END=", 4) != NULL);
}

/*
 * Returns the entry for the line [line, end). `offset` is its offset in the log, in bytes. If `odd` is true, the line
 * is not plain (line_scanner.h).
 */
static nl_scanned_line scan_line(nl_line_scanner *s, const char *line, const char *end, const char *limit,
                                 uint64_t offset, bool odd)
{
    size_t size = (size_t)(end - line);
    nl_scanned_line other = {0, nl_line_place(offset, size < NL_LINE_LONGEST ? size : NL_LINE_LONGEST, false)};
    if (odd || size > LONGEST_PLAIN || size < sizeof(uint64_t) ||
        (nl_text_load_word(line) & s->begin_mask) != s->begin_word || may_need_padding(s, line, size))
        return other;
    while (end[-1] == '\r')
        end--;
    const char *at = line + s->time.size + 1;
    int64_t time_ns;
    if (!scanner_read_time(s, &at, end, &time_ns) || !time_ends(at, end, limit))
        return other;
    return (nl_scanned_line){time_ns, nl_line_place(offset, (uint64_t)(end - line), true)};
}

/* Positions in a block, one bit per byte. */
typedef struct marks {
    uint64_t newlines;
    uint64_t times; /* candidates: the first letter of the time field's name, with '=' where the name would end */
    uint64_t nuls;
} marks;

#ifdef __SSE2__
/* Sets the marks for 16 bytes, beginning at byte i of the block. */
static inline void mark_some(marks *m, const char *at, unsigned i, __m128i letter, size_t name_size)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
    __m128i behind = _mm_loadu_si128((const __m128i *)(const void *)(at + i + name_size));
    __m128i time = _mm_and_si128(_mm_cmpeq_epi8(bytes, letter), _mm_cmpeq_epi8(behind, _mm_set1_epi8('=')));
    m->newlines |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))) << i;
    m->times |= (uint64_t)(unsigned)_mm_movemask_epi8(time) << i;
    m->nuls |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())) << i;
}

/* Returns the marks for a block. Also reads the name_size bytes after the block. */
static inline marks mark_block(const char *at, char first, size_t name_size)
{
    const __m128i letter = _mm_set1_epi8(first);
    marks m = {0};
    mark_some(&m, at, 0, letter, name_size); /* the loop is unrolled, so that the shifts are constant */
    mark_some(&m, at, 16, letter, name_size);
    mark_some(&m, at, 32, letter, name_size);
    mark_some(&m, at, 48, letter, name_size);
    return m;
}
#else
static inline marks mark_block(const char *at, char first, size_t name_size)
{
    marks m = {0};
    for (unsigned i = 0; i < BLOCK; i++) {
        m.newlines |= (uint64_t)(at[i] == '\n') << i;
        m.times |= (uint64_t)(at[i] == first && at[i + name_size] == '=') << i;
        m.nuls |= (uint64_t)(at[i] == '\0') << i;
    }
    return m;
}
#endif

/* Returns the marks for the last `size` bytes of the input, which may be less than a block. */
static marks mark_rest(const nl_line_scanner *s, const char *at, size_t size)
{
    char bytes[2 * BLOCK];
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, at, size < sizeof bytes ? size : sizeof bytes);
    return mark_block(bytes, s->time.data[0], s->time.size);
}

/* Returns whether the time field's name and '=' are at a position. `left` is the number of bytes there. */
static inline bool is_time_name(const nl_line_scanner *s, const char *at, size_t left)
{
    if (left >= sizeof(uint64_t))
        return (nl_text_load_word(at) & s->begin_mask) == s->begin_word;
    return left > s->time.size && memcmp(at, s->time.data, s->time.size) == 0 && at[s->time.size] == '=';
}

/*
 * Returns the candidates that are the time field's name and '=', followed by digits. Only these candidates may begin
 * another record; the decoder determines which candidates begin a record.
 */
static uint64_t real_times(const nl_line_scanner *s, const char *block, const char *end, uint64_t times)
{
    uint64_t real = 0;
    for (; times != 0; times &= times - 1) {
        const char *at = block + __builtin_ctzll(times);
        size_t left = (size_t)(end - at);
        if (is_time_name(s, at, left) && left > s->time.size + YEAR_DIGITS &&
            nl_digits(at + s->time.size + 1, YEAR_DIGITS) == YEAR_DIGITS)
            real |= times & -times;
    }
    return real;
}

size_t nl_lines_scan(nl_line_scanner *s, const char *data, size_t size, uint64_t offset, nl_scanned_line *lines,
                     size_t capacity, size_t *used)
{
    const char *end = data + size, *line = data;
    size_t count = 0, reach = BLOCK + s->time.size;
    bool odd = false;   /* the line is not plain */
    uint64_t start = 1; /* 1 if a line begins at the start of the block, otherwise 0 */
    for (const char *block = data; block < end && count < capacity; block += BLOCK) {
        size_t left = (size_t)(end - block);
        marks m = left >= reach ? mark_block(block, s->time.data[0], s->time.size) : mark_rest(s, block, left);
        uint64_t inside = m.times & ~(m.newlines << 1 | start);
        if (inside != 0)
            inside = real_times(s, block, end, inside);
        if (m.nuls != 0)
            s->met_nul = true;
        start = m.newlines >> (BLOCK - 1);
        for (; m.newlines != 0 && count < capacity; m.newlines &= m.newlines - 1) {
            uint64_t before = (m.newlines & -m.newlines) - 1;
            const char *newline = block + __builtin_ctzll(m.newlines);
            odd = odd || (inside & before) != 0;
            inside &= ~before;
            lines[count++] = scan_line(s, line, newline, end, offset + (uint64_t)(line - data), odd);
            line = newline + 1;
            odd = false;
        }
        odd = odd || inside != 0;
    }
    *used = (size_t)(line - data);
    return count;
}
