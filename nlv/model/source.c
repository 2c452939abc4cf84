#include "config.h"

#include "model/source.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPILL_RECORDS = 20000 /* at once, so that others get their turn */ };

static char *path_of(const char *url)
{
    nl_url *parsed = nl_url_parse(url);
    char *path = NULL;
    if (parsed != NULL && parsed->scheme == NL_SCHEME_FILE && parsed->option_count == 0)
        path = g_strdup(parsed->path);
    nl_url_free(parsed);
    return path;
}

static void new_decoder(source *s)
{
    if (s->decoder != NULL)
        program_reading_close_decoder(s->reading, s->decoder);
    s->decoder = program_reading_decoder(s->reading, s->url);
}

source *source_open(const char *url, bool follow, program_reading *reading)
{
    source *s = g_new0(source, 1);
    s->url = g_strdup(url);
    s->path = path_of(url);
    s->follow = follow;
    s->reading = reading;
    s->text.fd = -1;
    if (s->path != NULL && text_file_open(&s->text, s->path, reading->fraction)) {
        s->decoder = program_reading_decoder(reading, url);
        return s;
    }
    s->reader = program_log_open(reading, url, follow, follow);
    if (s->reader == NULL) {
        source_close(s);
        return NULL;
    }
    return s;
}

void source_close(source *s)
{
    if (s->decoder != NULL)
        program_reading_close_decoder(s->reading, s->decoder);
    program_log_close(s->reader);
    prints_free(&s->prints);
    g_free(s->notice);
    g_free(s->url);
    g_free(s->path);
    g_free(s);
}

/* A log that was empty, or of another kind, may have become one of text: then it is read as such. */
static bool became_text(source *s)
{
    uint64_t read, size;
    text_file text;
    program_log_progress(s->reader, &read, &size);
    if (s->path == NULL || read > 0 || !text_file_open(&text, s->path, s->reading->fraction))
        return false;
    s->text = text; /* a spill that was begun is the model's */
    program_log_close(s->reader);
    s->reader = NULL;
    s->at = 0;
    prints_free(&s->prints);
    new_decoder(s);
    return true;
}

static bool open_spill(source *s)
{
    if (s->text.fd >= 0)
        return true;
    if (text_file_spill(&s->text)) {
        new_decoder(s);
        return true;
    }
    program_error("make a temporary file: %s", strerror(errno));
    s->failed = s->reader_ended = true;
    return false;
}

static void notice(source *s, const char *what)
{
    char *text = g_strdup_printf("%s %s", s->url, what);
    g_free(s->notice);
    s->notice = text;
}

/* Records of what is no text become lines of the spill. */
static void spill(source *s)
{
    nl_buffer lines = {0};
    const nl_record *record;
    for (unsigned i = 0; i < SPILL_RECORDS; i++) {
        nl_status status = program_log_next(s->reader, NULL, &record);
        if (status != NL_OK) {
            s->reader_ended = status != NL_AGAIN;
            if (s->reader_ended && s->follow && s->path == NULL)
                notice(s, "has ended, or is gone: what came until now stays");
            break;
        }
        nl_record_encode(record, NL_FORMAT_ULM, &lines);
    }
    if (lines.size > 0 && !text_file_write(&s->text, &lines)) {
        program_error("write a temporary file: %s", strerror(errno));
        s->failed = s->reader_ended = true;
    }
    nl_buffer_free(&lines);
}

/* Whether a followed file was cut short, or another has its name now: then the text is the new one's. */
static bool was_replaced(source *s, uint64_t size)
{
    struct stat ours, named;
    if (fstat(s->text.fd, &ours) != 0)
        return false;
    bool is_there = stat(s->path, &named) == 0;
    bool is_other = is_there && (named.st_dev != ours.st_dev || named.st_ino != ours.st_ino);
    if (!is_there && !s->is_gone)
        notice(s, "is gone: what was read of it stays, and a new file of that name is read");
    s->is_gone = !is_there;
    if (size >= s->at && !is_other)
        return false;
    if (!is_other && size == 0 && s->at > 0 && !s->is_emptied)
        notice(s, "was emptied: what was read of it stays");
    s->is_emptied = size == 0;
    text_file fresh;
    if (!text_file_open(&fresh, s->path, s->reading->fraction))
        return false; /* nothing is in it yet */
    notice(s,
           is_other ? "is another file now, which is read too" : "was cut short and is read anew; what was read stays");
    s->text = fresh; /* the old one is the model's, for the records that it has of it */
    s->at = 0;
    prints_free(&s->prints);
    new_decoder(s);
    return true;
}

/* Whether a line ends in what was not scanned yet: looked at from the end, where it mostly does. */
static bool has_line(const source *s, uint64_t size)
{
    char last[4096];
    for (uint64_t end = size; end > s->at;) {
        size_t count = (size_t)MIN(end - s->at, sizeof last);
        ssize_t got = pread(s->text.fd, last, count, (off_t)(end - count));
        if (got <= 0)
            return false;
        if (memchr(last, '\n', (size_t)got) != NULL)
            return true;
        end -= count;
    }
    return false;
}

source_state source_look(source *s)
{
    if (s->ended)
        return SOURCE_ENDED;
    if (s->reader != NULL && became_text(s))
        return SOURCE_NEW;
    if (s->reader != NULL && !s->reader_ended) {
        bool had_text = s->text.fd >= 0;
        if (!open_spill(s))
            return SOURCE_ENDED;
        spill(s);
        if (!had_text)
            return SOURCE_NEW;
    }
    uint64_t size = text_file_size(&s->text);
    if (size > s->at && has_line(s, size))
        return SOURCE_MORE;
    if (s->reader == NULL && s->follow)
        return was_replaced(s, size) ? SOURCE_NEW : SOURCE_QUIET;
    if (s->reader != NULL && !s->reader_ended)
        return s->follow ? SOURCE_QUIET : SOURCE_MORE;
    s->ended = true;
    return SOURCE_ENDED;
}

scan_job source_job(const source *s)
{
    return (scan_job){.fd = s->text.fd,
                      .text = s->number,
                      .from = s->at,
                      .to = MAX(text_file_size(&s->text), s->at),
                      .format = s->text.format,
                      .fraction = s->text.fraction};
}

/* The records that the decoder has, whose text begins at data, which is at offset in the log. */
static void take_decoded(source *s, const char *data, size_t size, uint64_t offset, extractor *x, batch *rows)
{
    const nl_record *record;
    while (nl_decoder_next(s->decoder, &record) == NL_OK) {
        const char *raw = record->raw.data;
        uint64_t at = raw != NULL && raw >= data && raw < data + size ? offset + (uint64_t)(raw - data) : offset;
        extract(x, record, place_make(s->number, at), rows);
    }
}

void source_decode_odd(source *s, scan_part *p, extractor *x)
{
    for (size_t i = 0; i < p->odd_count; i++) {
        const scan_odd *odd = &p->odd[i];
        const char *text = p->odd_text.data + odd->at;
        nl_decoder_pass_over(s->decoder, s->text.format, odd->lines_before, odd->bytes_before);
        nl_decoder_feed(s->decoder, text, odd->size);
        take_decoded(s, text, odd->size, odd->offset, x, &p->rows);
    }
    nl_decoder_pass_over(s->decoder, s->text.format, p->lines_after, p->bytes_after);
}

void source_rewind(source *s)
{
    s->at = 0;
    s->ended = false;
    if (s->text.fd >= 0)
        new_decoder(s);
}

bool source_read_as_records(source *s)
{
    s->text.fd = -1; /* it is the model's */
    s->at = 0;
    s->reader = program_log_open(s->reading, s->url, s->follow, s->follow);
    s->ended = s->reader == NULL;
    return !s->ended;
}

void source_finish(source *s, batch *rows, extractor *x)
{
    if (s->text.fd < 0 || s->decoder == NULL)
        return;
    uint64_t size = text_file_size(&s->text), from = s->at;
    nl_buffer line = {0};
    size_t most = (size_t)MIN(size > s->at ? size - s->at : 0, 2 << 20);
    nl_buffer_reserve(&line, most + 64);
    ssize_t got = most > 0 ? pread(s->text.fd, line.data, most, (off_t)s->at) : 0;
    if (got > 0) {
        nl_decoder_feed(s->decoder, line.data, (size_t)got);
        take_decoded(s, line.data, (size_t)got, from, x, rows);
        s->at += (uint64_t)got;
    }
    nl_decoder_finish(s->decoder);
    take_decoded(s, line.data, got > 0 ? (size_t)got : 0, from, x, rows);
    nl_buffer_free(&line);
}
