#include "config.h"

#include "input.h"
#include "record/format.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

struct input {
    input_settings *settings;
    program_log *log;
    nl_buffer key;
    nl_buffer line;
    uint64_t records;
    bool unterminated;
};

input *input_open(input_settings *settings, const char *path)
{
    program_log *log = program_log_open(&settings->reading, path, false, false);
    if (log == NULL)
        return NULL;
    input *in = nl_memory_check(calloc(1, sizeof *in));
    in->settings = settings;
    in->log = log;
    return in;
}

void input_make_line(input_settings *settings, const nl_record *record, nl_buffer *line)
{
    if (settings->format == NL_FORMAT_UNKNOWN)
        settings->format = record->raw_format != NL_FORMAT_UNKNOWN ? record->raw_format : NL_FORMAT_ULM;
    line->size = 0;
    if (settings->packed) {
        packed_append(record, line);
    } else if (record->raw_format == settings->format) {
        nl_buffer_append(line, record->raw.data, record->raw.size);
        nl_buffer_append(line, "\n", 1);
    } else {
        nl_record_encode(record, settings->format, line);
    }
}

void input_make_entry(input_settings *settings, const nl_record *record, nl_buffer *key, nl_buffer *line)
{
    input_make_line(settings, record, line);
    key->size = 0;
    key_encode(settings->key, record, key);
    if (settings->unique)
        nl_buffer_append(key, line->data, line->size);
}

bool input_next(input *in, nl_string *key, nl_string *line)
{
    const nl_record *record;
    if (program_log_next(in->log, in->settings->where.filter, &record) != NL_OK)
        return false;
    in->records++;
    in->unterminated = (record->flags & NL_RECORD_UNTERMINATED) != 0;
    input_make_entry(in->settings, record, &in->key, &in->line);
    *key = (nl_string){in->key.data, in->key.size};
    *line = (nl_string){in->line.data, in->line.size};
    return true;
}

bool input_is_unterminated(const input *in)
{
    return in->unterminated;
}

uint64_t input_record(const input *in)
{
    return in->records;
}

void input_progress(const input *in, uint64_t *done, uint64_t *total)
{
    program_log_progress(in->log, done, total);
}

void input_close(input *in)
{
    program_log_close(in->log);
    nl_buffer_free(&in->key);
    nl_buffer_free(&in->line);
    free(in);
}

typedef struct sorted_input {
    merge_input base;
    input *in;
    char *path;
    nl_buffer before; /* the key of the previous record */
    bool told;
    bool *disordered;
} sorted_input;

int input_compare_keys(nl_string a, nl_string b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static bool sorted_next(merge_input *base, item *out)
{
    sorted_input *s = (sorted_input *)base;
    nl_string key, line;
    if (!input_next(s->in, &key, &line))
        return false;
    if (s->in->records > 1 && !s->told && !s->in->unterminated &&
        input_compare_keys(key, (nl_string){s->before.data, s->before.size}) < 0) {
        program_error("%s: record %" PRIu64 " is out of order, so the result is not sorted; sort without -m", s->path,
                      s->in->records);
        s->told = *s->disordered = true;
    }
    s->before.size = 0;
    nl_buffer_append(&s->before, key.data, key.size);
    size_t rest = key.size > 8 ? key.size - 8 : 0;
    *out = (item){item_prefix(key.data, key.size), key.data + key.size - rest, line.data, (uint32_t)rest,
                  (uint32_t)line.size};
    return true;
}

static void sorted_close(merge_input *base)
{
    sorted_input *s = (sorted_input *)base;
    input_close(s->in);
    nl_buffer_free(&s->before);
    free(s->path);
    free(s);
}

merge_input *input_open_sorted(input_settings *settings, const char *path, bool *disordered)
{
    input *in = input_open(settings, path);
    if (in == NULL)
        return NULL;
    sorted_input *s = nl_memory_check(calloc(1, sizeof *s));
    *s = (sorted_input){.base = {sorted_next, sorted_close}, .in = in, .path = strdup(path), .disordered = disordered};
    return &s->base;
}
