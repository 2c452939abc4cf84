#include "config.h"

#include "convert/syslog.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/time_internal.h"
#include "convert/builder.h"
#include "convert/lines.h"
#include "record/format.h"
#include "record/field_name.h"

#include <stdlib.h>
#include <time.h>

enum {
    SECOND_SIZE = 19, /* YYYY-MM-DDTHH:MM:SS */
    ZONE_SIZE = 8,    /* maximum size of Z or +hh:mm */
    BSD_SIZE = 15,    /* Mmm dd hh:mm:ss */
    PRIORITY_MAX = 191,
    YEARS_BACK = 8, /* a 29 February is at most eight years ago */
    DAY_S = 86400,
    KNOWN_BSD_S = 3600, /* maximum age of a cached time without a year, in seconds */
};

struct syslog_reader {
    builder builder;
    struct { /* the second of the previous time with a year */
        char second[SECOND_SIZE], zone[ZONE_SIZE];
        size_t zone_size; /* 0: no time is cached */
        int64_t begin_ns;
    } iso;
    struct { /* the previous time without a year */
        char text[BSD_SIZE];
        int64_t now_s; /* time at which the reader read it; 0: no time is cached */
        int64_t begin_ns;
    } bsd;
};

/* ---- framing ---- */

/*
 * Reads the size of a message and the space after it. Sets *head to the length of this text, or to 0 if more bytes are
 * needed, and *count to the size of the message. Returns false if the bytes do not begin with a size and the "<" of a
 * priority.
 */
static bool read_count(const char *data, size_t size, size_t *head, size_t *count)
{
    size_t digits = 0;
    *head = *count = 0;
    while (digits < size && data[digits] >= '0' && data[digits] <= '9' && *count <= SYSLOG_COUNTED_MAX)
        *count = *count * 10 + (size_t)(data[digits++] - '0');
    if (digits == 0 || data[0] == '0' || *count > SYSLOG_COUNTED_MAX || (digits < size && data[digits] != ' ') ||
        (digits + 1 < size && data[digits + 1] != '<'))
        return false;
    if (digits + 1 < size)
        *head = digits + 1;
    return true;
}

/* Removes trailing newlines, carriage returns and NULs, which some senders append to messages. */
static nl_string trim_message(const char *data, size_t size)
{
    while (size > 0 && (data[size - 1] == '\n' || data[size - 1] == '\r' || data[size - 1] == '\0'))
        size--;
    return (nl_string){data, size};
}

syslog_frame syslog_find_frame(const char *data, size_t size)
{
    size_t head, count;
    if (size > 0 && read_count(data, size, &head, &count)) {
        if (head == 0 || size - head < count)
            return (syslog_frame){.expected = head > 0 ? head + count : 0};
        return (syslog_frame){
            .size = head + count, .expected = head + count, .message = trim_message(data + head, count)};
    }
    const char *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    if (newline == NULL)
        return (syslog_frame){.size = 0};
    return (syslog_frame){.size = (size_t)(newline + 1 - data),
                          .message = trim_message(data, (size_t)(newline - data))};
}

/* ---- times ---- */

/* Converts the digits of a fraction of a second to nanoseconds. Ignores digits after the ninth. */
static int64_t fraction_of(const char *digits, size_t count)
{
    int64_t ns = 0;
    for (size_t i = 0; i < 9; i++)
        ns = ns * 10 + (i < count ? digits[i] - '0' : 0);
    return ns;
}

/*
 * Reads YYYY-MM-DDTHH:MM:SS with an optional fraction and an optional zone. Returns false if the text has another form.
 */
static bool read_iso_time(syslog_reader *r, nl_string text, int64_t *time_ns)
{
    if (text.size < SECOND_SIZE || text.data[4] != '-')
        return false;
    const char *end = text.data + text.size, *zone = text.data + SECOND_SIZE, *fraction = zone;
    if (zone < end && *zone == '.') {
        fraction++;
        zone = fraction + nl_digits(fraction, (size_t)(end - fraction));
    }
    size_t zone_size = (size_t)(end - zone);
    bool known = zone_size > 0 && zone_size == r->iso.zone_size && memcmp(zone, r->iso.zone, zone_size) == 0 &&
                 memcmp(text.data, r->iso.second, SECOND_SIZE) == 0;
    if (!known) {
        if (nl_time_parse_calendar(text.data, text.size, NL_FRACTION_DECIMAL, time_ns) != NL_OK)
            return false;
        r->iso.zone_size = zone_size <= ZONE_SIZE ? zone_size : 0;
        memcpy(r->iso.zone, zone, r->iso.zone_size);
        memcpy(r->iso.second, text.data, SECOND_SIZE);
        r->iso.begin_ns = *time_ns - fraction_of(fraction, (size_t)(zone - fraction));
        return true;
    }
    *time_ns = r->iso.begin_ns + fraction_of(fraction, (size_t)(zone - fraction));
    return true;
}

/* Returns the number of the month whose name begins the text: 0 for Jan to 11 for Dec. Returns -1 for other text. */
static int month_of(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int month = 0; month < 12; month++)
        if (memcmp(text, months + (ptrdiff_t)month * 3, 3) == 0)
            return month;
    return -1;
}

static bool read_two(const char *text, int maximum, int *number)
{
    char tens = text[0] == ' ' ? '0' : text[0];
    *number = (tens - '0') * 10 + (text[1] - '0');
    return tens >= '0' && tens <= '9' && text[1] >= '0' && text[1] <= '9' && *number <= maximum;
}

/*
 * Finds the latest time with this text that is at most a day after now, in the receiver's time zone. The text has
 * BSD_SIZE bytes.
 */
static bool compute_bsd_time(const char *text, int64_t now_s, int64_t *time_ns)
{
    struct tm now = {0}, asked = {.tm_mon = month_of(text), .tm_isdst = -1};
    time_t now_time = (time_t)now_s;
    if (asked.tm_mon < 0 || text[3] != ' ' || text[6] != ' ' || text[9] != ':' || text[12] != ':' ||
        !read_two(text + 4, 31, &asked.tm_mday) || !read_two(text + 7, 23, &asked.tm_hour) ||
        !read_two(text + 10, 59, &asked.tm_min) || !read_two(text + 13, 60, &asked.tm_sec) ||
        localtime_r(&now_time, &now) == NULL)
        return false;
    for (int back = -1; back <= YEARS_BACK; back++) {
        struct tm tried = asked;
        tried.tm_year = now.tm_year - back;
        int64_t found_s = mktime(&tried);
        if (found_s > now_s + DAY_S || tried.tm_mon != asked.tm_mon)
            continue; /* the time is in the future, or is 29 February in a year without this day */
        return !__builtin_mul_overflow(found_s, NL_NS_PER_SECOND, time_ns);
    }
    return false;
}

/*
 * Removes "Mmm dd hh:mm:ss" with an optional fraction from the beginning of *text. Returns false if the text has
 * another form.
 */
static bool take_bsd_time(syslog_reader *r, nl_string *text, int64_t now_ns, int64_t *time_ns)
{
    int64_t now_s = now_ns / NL_NS_PER_SECOND;
    if (text->size < BSD_SIZE)
        return false;
    bool known = r->bsd.now_s != 0 && memcmp(text->data, r->bsd.text, BSD_SIZE) == 0 &&
                 now_s - r->bsd.now_s < KNOWN_BSD_S && r->bsd.now_s - now_s < KNOWN_BSD_S;
    if (!known) {
        if (!compute_bsd_time(text->data, now_s, &r->bsd.begin_ns))
            return false;
        memcpy(r->bsd.text, text->data, BSD_SIZE);
        r->bsd.now_s = now_s;
    }
    *time_ns = r->bsd.begin_ns;
    text_skip(text, BSD_SIZE);
    if (text->size > 1 && text->data[0] == '.') {
        size_t digits = nl_digits(text->data + 1, text->size - 1);
        *time_ns += fraction_of(text->data + 1, digits);
        text_skip(text, 1 + digits);
    }
    return true;
}

/* ---- parts of messages ---- */

nl_level syslog_level(unsigned severity)
{
    static const nl_level levels[] = {NL_EMERGENCY, NL_ALERT,     NL_ERROR, NL_ERROR,
                                      NL_WARNING,   NL_IMPORTANT, NL_USAGE, NL_DEBUG};
    return severity < sizeof levels / sizeof levels[0] ? levels[severity] : NL_LEVEL_NONE;
}

static bool take_priority(nl_string *text, int *priority)
{
    int number = 0;
    size_t at = 1;
    if (text->size < 3 || text->data[0] != '<')
        return false;
    for (; at < text->size && at <= 3 && text->data[at] >= '0' && text->data[at] <= '9'; at++)
        number = number * 10 + (text->data[at] - '0');
    if (at == 1 || at == text->size || text->data[at] != '>' || number > PRIORITY_MAX)
        return false;
    text_skip(text, at + 1);
    *priority = number;
    return true;
}

/* Removes the first word of *text, and returns the word. A word ends before a space. */
static nl_string take_word(nl_string *text)
{
    const char *space = text->size > 0 ? memchr(text->data, ' ', text->size) : NULL;
    nl_string word = {text->data, space != NULL ? (size_t)(space - text->data) : text->size};
    text_skip(text, word.size);
    return word;
}

/*
 * Removes a word and the space after it from the beginning of *text. If the word is "-", sets word->data to NULL.
 * Returns false if the word or the space is missing.
 */
static bool take_header_word(nl_string *text, nl_string *word)
{
    *word = take_word(text);
    if (word->size == 0 || text->size == 0)
        return false;
    text_skip(text, 1);
    if (nl_string_is(*word, "-"))
        *word = (nl_string){0};
    return true;
}

static void add_syslog_text(builder *b, const char *name, nl_string value)
{
    nl_field *field = builder_add_good_name(b, nl_string_of(name));
    field->type = NL_TYPE_STRING;
    field->string = value;
}

/* Adds the field ID.NAME. Returns false if the names use too much memory. */
static bool add_parameter(builder *b, nl_string id, nl_string name, nl_string value)
{
    size_t size = id.size + (name.size > 0 ? 1 + name.size : 0);
    char *full = builder_bytes(b, size);
    if (full == NULL)
        return false;
    memcpy(full, id.data, id.size);
    if (name.size > 0) {
        full[id.size] = '.';
        memcpy(full + id.size + 1, name.data, name.size);
    }
    nl_name_make_valid(full, size);
    nl_field *field = builder_add_good_name(b, (nl_string){full, size});
    field->type = NL_TYPE_STRING;
    field->string = value;
    return true;
}

/*
 * Removes a quoted value from the beginning of *text. In the value, \", \\ and \] stand for their second character.
 * Returns false if the text has another form.
 */
static bool take_quoted(builder *b, nl_string *text, nl_string *value)
{
    if (!text_take(text, "\""))
        return false;
    size_t end = 0, escapes = 0;
    for (; end < text->size && text->data[end] != '"'; end++)
        if (text->data[end] == '\\' && end + 1 < text->size) {
            escapes++;
            end++;
        }
    if (end >= text->size)
        return false;
    *value = (nl_string){text->data, end};
    char *plain = escapes > 0 ? builder_bytes(b, end) : NULL;
    if (escapes > 0 && plain == NULL)
        return false;
    for (size_t i = 0, size = 0; i < end && escapes > 0; i++) {
        if (text->data[i] == '\\' && i + 1 < end && strchr("\"\\]", text->data[i + 1]) != NULL &&
            text->data[i + 1] != '\0')
            i++;
        plain[size++] = text->data[i];
        *value = (nl_string){plain, size};
    }
    text_skip(text, end + 1);
    return true;
}

/*
 * Removes [ID NAME="VALUE" ...] from the beginning of *text, and adds the fields. Returns false if the text has another
 * form.
 */
static bool take_element(builder *b, nl_string *text)
{
    size_t size = 0;
    nl_string value;
    while (size < text->size && strchr(" ]=\"", text->data[size]) == NULL)
        size++;
    nl_string id = {text->data, size};
    text_skip(text, size);
    if (id.size == 0)
        return false;
    if (text_take(text, "]"))
        return add_parameter(b, id, (nl_string){0}, (nl_string){"", 0});
    do {
        if (!text_take(text, " "))
            return false;
        const char *equals = text->size > 0 ? memchr(text->data, '=', text->size) : NULL;
        nl_string name = {text->data, equals != NULL ? (size_t)(equals - text->data) : 0};
        if (name.size == 0)
            return false;
        text_skip(text, name.size + 1);
        if (!take_quoted(b, text, &value) || !add_parameter(b, id, name, value))
            return false;
    } while (!text_take(text, "]"));
    return true;
}

/*
 * Removes structured data and the space after it from the beginning of *text, and adds the fields. Leaves malformed
 * data in the text.
 */
static void take_structured(builder *b, nl_string *text)
{
    size_t fields = b->count;
    nl_string rest = *text;
    bool good = text_take(&rest, "-");
    if (!good)
        while ((good = text_take(&rest, "[") && take_element(b, &rest)) && rest.size > 0 && rest.data[0] == '[')
            ;
    if (good && (rest.size == 0 || text_take(&rest, " ")))
        *text = rest;
    else
        b->count = fields;
}

/* ---- messages ---- */

static bool set_time(builder *b, int64_t time_ns)
{
    b->seen |= 1u << MEMBER_TIME;
    b->record->time_ns = time_ns;
    return true;
}

/* Reads a message of RFC 5424 after its priority. Returns false if its header is malformed. */
static bool read_5424(syslog_reader *r, nl_string *text)
{
    nl_string rest = *text, time, process, id;
    builder *b = &r->builder;
    int64_t time_ns;
    if (!text_take(&rest, "1 ") || !take_header_word(&rest, &time) || !take_header_word(&rest, &b->record->host) ||
        !take_header_word(&rest, &b->record->prog) || !take_header_word(&rest, &process) ||
        !take_header_word(&rest, &id) || (time.data != NULL && !read_iso_time(r, time, &time_ns))) {
        b->record->host = b->record->prog = (nl_string){0};
        return false;
    }
    if (time.data != NULL)
        set_time(b, time_ns);
    if (id.data != NULL)
        b->record->event = id;
    if (process.data != NULL)
        add_syslog_text(b, "PROCID", process);
    take_structured(b, &rest);
    text_take(&rest, "\xef\xbb\xbf"); /* the byte-order mark of UTF-8 */
    *text = rest;
    return true;
}

/*
 * Removes "PROG:" or "PROG[PROCID]:" and the space after it from the beginning of *text, and sets PROG. Does nothing if
 * the text has another form.
 */
static void take_tag(builder *b, nl_string *text)
{
    nl_string rest = *text, process = {0};
    size_t size = 0;
    while (size < rest.size && rest.data[size] > ' ' && rest.data[size] != ':' && rest.data[size] != '[')
        size++;
    nl_string tag = {rest.data, size};
    text_skip(&rest, size);
    if (tag.size > 0 && text_take(&rest, "[")) {
        const char *end = rest.size > 0 ? memchr(rest.data, ']', rest.size) : NULL;
        if (end == NULL || memchr(rest.data, ' ', (size_t)(end - rest.data)) != NULL)
            return;
        process = (nl_string){rest.data, (size_t)(end - rest.data)};
        text_skip(&rest, process.size + 1);
    }
    bool colon = text_take(&rest, ":");
    if (tag.size == 0 || !colon || (rest.size > 0 && !text_take(&rest, " ")))
        return;
    b->record->prog = tag;
    if (process.size > 0)
        add_syslog_text(b, "PROCID", process);
    *text = rest;
}

/*
 * Returns whether the word after the time is a tag, and not a host name, which some senders omit.
 */
static bool is_tag(nl_string word)
{
    return word.size == 0 || word.data[word.size - 1] == ':' || memchr(word.data, '[', word.size) != NULL;
}

/* Reads a message of RFC 3164, or a line of a log file, after its priority. Returns whether the message has a time. */
static bool read_3164(syslog_reader *r, nl_string *text, int64_t now_ns)
{
    builder *b = &r->builder;
    nl_string rest = *text, iso = *text;
    int64_t time_ns;
    bool dated = take_bsd_time(r, &rest, now_ns, &time_ns);
    if (!dated) {
        dated = read_iso_time(r, take_word(&iso), &time_ns);
        rest = dated ? iso : rest;
    }
    dated = dated && text_take(&rest, " ");
    if (dated) {
        set_time(b, time_ns);
        *text = rest;
        nl_string word = take_word(&rest);
        if (!is_tag(word) && text_take(&rest, " ")) {
            b->record->host = word;
            *text = rest;
        }
    }
    take_tag(b, text);
    return dated;
}

static void add_priority(builder *b, int priority)
{
    static const char *const facilities[] = {
        "kern",   "user",   "mail",     "daemon", "auth",   "syslog", "lpr",    "news",
        "uucp",   "cron",   "authpriv", "ftp",    "ntp",    "audit",  "alert",  "clock",
        "local0", "local1", "local2",   "local3", "local4", "local5", "local6", "local7",
    };
    static const char severities[] = "01234567";
    if (priority < 0)
        return;
    add_syslog_text(b, "FACILITY", nl_string_of(facilities[priority / 8]));
    add_syslog_text(b, "PRIORITY", (nl_string){severities + priority % 8, 1});
    b->record->level = syslog_level((unsigned)priority % 8);
}

bool syslog_read(syslog_reader *r, nl_string message, const syslog_about *about, bool any, sink *s)
{
    builder *b = &r->builder;
    int priority = about->priority;
    builder_begin(b, 8 * message.size + 256); /* the names of fields may be seven times as long as in the message */
    b->record->event = (nl_string){"syslog", 6};
    bool prioritized = take_priority(&message, &priority);
    add_priority(b, priority);
    bool good = (prioritized && read_5424(r, &message)) || read_3164(r, &message, about->now_ns) || prioritized || any;
    if (!good)
        return nl_error_false(NL_ERROR_INVALID, "not a syslog message: it has neither a priority nor a time");
    if ((b->seen & 1u << MEMBER_TIME) == 0)
        set_time(b, about->now_ns);
    if (b->record->host.data == NULL && about->host != NULL)
        b->record->host = nl_string_of(about->host);
    add_syslog_text(b, "MESSAGE", message);
    return builder_finish(b, false, s);
}

syslog_reader *syslog_reader_new(void)
{
    return nl_memory_check(calloc(1, sizeof(syslog_reader)));
}

void syslog_reader_free(syslog_reader *r)
{
    if (r != NULL)
        builder_free(&r->builder);
    free(r);
}

/* ---- files ---- */

typedef struct syslog_file {
    importer base;
    syslog_reader *reader;
} syslog_file;

static void syslog_open_file(importer *i)
{
    ((syslog_file *)i)->reader = syslog_reader_new();
}

static void syslog_close_file(importer *i)
{
    syslog_reader_free(((syslog_file *)i)->reader);
}

static size_t syslog_cut(const char *data, size_t size)
{
    size_t whole = 0, next;
    while ((next = syslog_find_frame(data + whole, size - whole).size) > 0)
        whole += next;
    return whole;
}

static void syslog_read_file(importer *i, const char *data, size_t size, sink *s)
{
    syslog_reader *r = ((syslog_file *)i)->reader;
    const import_about none = {0}, *about = s->about != NULL ? s->about : &none;
    syslog_about of = {
        .now_ns = about->written_ns > 0 ? about->written_ns : nl_time_now_ns(), .host = about->host, .priority = -1};
    uint64_t line = 1;
    for (size_t at = 0; at < size && !s->stopped;) {
        syslog_frame frame = syslog_find_frame(data + at, size - at);
        bool whole = frame.size > 0;
        if (!whole) /* the last message of the input */
            frame = (syslog_frame){
                .size = size - at, .expected = frame.expected, .message = trim_message(data + at, size - at)};
        if (!whole && frame.expected > 0)
            sink_malformed(s, line, at, "the input ends within a message", data + at, frame.size);
        else if (frame.message.size > 0 && !syslog_read(r, frame.message, &of, false, s))
            sink_malformed(s, line, at, nl_error_message(), frame.message.data, frame.message.size);
        for (const char *at_line = data + at, *end = at_line + frame.size;
             (at_line = memchr(at_line, '\n', (size_t)(end - at_line))) != NULL; at_line++)
            line++;
        at += frame.size;
    }
}

/*
 * Returns whether the first line is a syslog message with a priority, or a line of a syslog file that does not contain
 * a NetLogger record.
 */
static bool syslog_detect(const char *data, size_t size)
{
    if (size == 0)
        return false;
    size_t head, count;
    const char *newline = memchr(data, '\n', size);
    nl_string line = {data, newline != NULL ? (size_t)(newline - data) : size};
    int priority;
    if (read_count(data, line.size, &head, &count))
        text_skip(&line, head);
    if (text_find(line, "DATE=") != NULL)
        return false;
    if (take_priority(&line, &priority))
        return true;
    if (nl_format_detect(line.data, line.size) != NL_FORMAT_UNKNOWN)
        return false; /* logfmt as Heroku writes it also begins with a time and a tag */
    syslog_reader r = {0};
    int64_t time_ns;
    nl_string rest = line;
    bool dated = take_bsd_time(&r, &rest, nl_time_now_ns(), &time_ns);
    if (!dated) {
        rest = line;
        dated = read_iso_time(&r, take_word(&rest), &time_ns);
    }
    nl_string word;
    if (!dated || !text_take(&rest, " "))
        return false;
    word = take_word(&rest);
    if (!is_tag(word)) { /* the word is a host name, and a tag follows */
        text_take(&rest, " ");
        word = take_word(&rest);
    }
    return word.size > 1 && word.data[word.size - 1] == ':' && memchr(word.data, '=', word.size) == NULL;
}

const importer_kind syslog_importer = {
    .name = "syslog",
    .what = "syslog messages, and log files of syslog daemons",
    .detect = syslog_detect,
    .cut = syslog_cut,
    .size = sizeof(syslog_file),
    .open = syslog_open_file,
    .close = syslog_close_file,
    .read = syslog_read_file,
};
