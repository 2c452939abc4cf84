#include "config.h"

#include "input/file_records.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/format.h"

#include <stdlib.h>
#include <string.h>

#define PLAIN_TEXT "text"
#define DETECTED_LINES "lines" /* the library's text formats, which are detected in each line */

struct file_reader {
    const importer_kind *kind; /* NULL: plain text */
    importer *importer;
    void *head;
    size_t header_size;
    char *path;
    nl_string prog; /* of plain text: the name of the file up to its first dot */
    import_about about;
    nl_fraction fraction;
};

/* Returns whether reading can begin at any record of the format, because no record depends on earlier records. */
static bool is_supported(const importer_kind *kind)
{
    return kind->read != NULL && !kind->in_order;
}

static const importer_kind *find_kind(const char *format, nl_string head)
{
    if (strcmp(format, DETECTED_LINES) == 0)
        return netlogger_importer_kind(NL_FORMAT_UNKNOWN);
    if (strcmp(format, PLAIN_TEXT) == 0)
        return NULL;
    const importer_kind *kind =
        strcmp(format, "?") == 0 ? importer_kind_detect(head.data, head.size) : importer_kind_find(format);
    return kind != NULL && is_supported(kind) ? kind : NULL;
}

file_reader *file_reader_new(const char *path, const char *host, nl_fraction fraction, const char *format,
                             nl_string head)
{
    if (nl_format_detect(head.data, head.size) == NL_FORMAT_NLB) {
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "%s: contains blocks, which file inputs do not read; send the file with nlwrite", path);
        return NULL;
    }
    file_reader *r = nl_memory_check(calloc(1, sizeof *r));
    const char *slash = strrchr(path, '/');
    r->path = program_copy(path);
    r->prog.data = r->path + (slash != NULL ? slash + 1 - path : 0);
    r->prog.size = strcspn(r->prog.data, ".");
    r->about = (import_about){.host = host, .written_ns = nl_time_now_ns()};
    r->fraction = fraction;
    r->kind = find_kind(format, head);
    if (r->kind != NULL && r->kind->head != NULL) {
        sink none = {.about = &r->about};
        r->header_size = r->kind->head(head.data, head.size, true, &r->head, &none);
        sink_free(&none);
    }
    if (r->kind != NULL)
        r->importer = importer_open(r->kind, r->head);
    return r;
}

void file_reader_free(file_reader *r)
{
    if (r == NULL)
        return;
    if (r->importer != NULL)
        importer_close(r->importer);
    if (r->head != NULL)
        r->kind->unshare(r->head);
    free(r->path);
    free(r);
}

const char *file_reader_format(const file_reader *r)
{
    return r->kind == NULL ? PLAIN_TEXT : r->kind->blocks ? DETECTED_LINES : r->kind->name;
}

size_t file_reader_header_size(const file_reader *r)
{
    return r->header_size;
}

static bool is_continuation(char first)
{
    return first == ' ' || first == '\t';
}

size_t file_reader_cut(const file_reader *r, const char *data, size_t size, bool idle)
{
    if (r->kind != NULL && r->kind->cut != NULL)
        return r->kind->cut(data, size);
    const char *newline = memrchr(data, '\n', size);
    size_t whole = newline != NULL ? (size_t)(newline + 1 - data) : 0;
    if (r->kind != NULL || idle || whole == 0 || (whole < size && !is_continuation(data[whole])))
        return whole;
    do { /* find the beginning of the last record, which may have a continuation */
        newline = memrchr(data, '\n', whole - 1);
        whole = newline != NULL ? (size_t)(newline + 1 - data) : 0;
    } while (whole > 0 && is_continuation(data[whole]));
    return whole;
}

/* Adds a record with this text, unless the text is empty. */
static void put_text(const file_reader *r, nl_string text, sink *s)
{
    if (text.size > 0 && text.data[text.size - 1] == '\n')
        text.size--;
    if (text.size > 0 && text.data[text.size - 1] == '\r')
        text.size--;
    nl_field fields[] = {nl_field_named("FILE", NL_TYPE_STRING), nl_field_named("MESSAGE", NL_TYPE_STRING)};
    fields[0].string = nl_string_of(r->path);
    fields[1].string = text;
    nl_record record = {.time_ns = nl_time_now_ns(),
                        .level = NL_USAGE,
                        .host = {r->about.host, strlen(r->about.host)},
                        .prog = r->prog,
                        .event = {"line", 4},
                        .fields = fields,
                        .field_count = 2};
    if (text.size > 0)
        sink_put(s, &record, false);
}

static void put_plain(const file_reader *r, const char *data, size_t size, sink *s)
{
    const char *start = data, *end = data + size;
    for (const char *at = data; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline != NULL ? newline + 1 : end;
        if (at < end && is_continuation(*at))
            continue;
        put_text(r, (nl_string){start, (size_t)(at - start)}, s);
        start = at;
    }
}

void file_reader_read(file_reader *r, const char *data, size_t size, exporter *to)
{
    sink s = {.out = to, .about = &r->about, .fraction = r->fraction};
    if (r->kind == NULL)
        put_plain(r, data, size, &s);
    else
        r->kind->read(r->importer, data, size, &s);
    size_t reports = s.report_count;
    for (size_t i = 0; i < reports; i++)
        put_text(r, (nl_string){s.report_text.data + s.reports[i].text, s.reports[i].text_size}, &s);
    sink_free(&s);
}
