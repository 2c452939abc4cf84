/*
 * The properties of nlconv's importers. An input gives the same records as one chunk and in several chunks, if the
 * importer allows the division. Each record that is read can be written in ULM and read again. The positions of errors
 * are within the input.
 */
#ifndef NETLOGGER_TESTS_FUZZ_IMPORTING_H
#define NETLOGGER_TESTS_FUZZ_IMPORTING_H

#include "text_round_trip.h"

#include "convert/convert.h"

/* ---- an exporter that describes each record and tries to write it ---- */

typedef struct fuzz_describer {
    exporter base;
    bool tries;
} fuzz_describer;

static inline void fuzz_describe(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    fuzz_put_record(&s->bytes, record);
    if (((fuzz_describer *)base)->tries)
        fuzz_check_written(record, NL_FORMAT_ULM);
}

static const exporter_kind fuzz_describer_kind = {
    .name = "description", .size = sizeof(fuzz_describer), .put = fuzz_describe};

static inline void fuzz_empty_sink(sink *s)
{
    nl_buffer_free(&s->bytes);
    nl_buffer_free(&s->report_text);
    free(s->reports);
}

/* ---- reading ---- */

static inline size_t fuzz_whole_lines(const char *data, size_t size)
{
    while (size > 0 && data[size - 1] != '\n')
        size--;
    return size;
}

/* Reads a chunk from memory of exactly its size. */
static inline void fuzz_read_chunk(importer *i, const char *data, size_t size, sink *s)
{
    char *copy = fuzz_copy(data, size);
    size_t first = s->report_count;
    i->kind->read(i, copy, size, s);
    for (; first < s->report_count; first++)
        fuzz_expect(s->reports[first].offset <= size, "what is malformed is in the chunk");
    free(copy);
}

/* Reads as the pipeline does. Divides the input at the first allowed place before cut_before; 0: no division. */
static inline void fuzz_import(const importer_kind *kind, const char *data, size_t size, size_t cut_before, sink *s)
{
    void *shared = NULL;
    size_t at = kind->head != NULL ? kind->head(data, size, true, &shared, s) : 0;
    fuzz_expect(at <= size, "a head is within the input");
    importer *in = importer_open(kind, shared);
    if (cut_before > at) {
        size_t (*cut)(const char *data, size_t size) = kind->cut != NULL ? kind->cut : fuzz_whole_lines;
        char *begun = fuzz_copy(data + at, cut_before - at);
        size_t whole = cut(begun, cut_before - at);
        free(begun);
        fuzz_expect(whole <= cut_before - at, "whole records are within what was given");
        fuzz_read_chunk(in, data + at, whole, s);
        at += whole;
        if (!kind->in_order) { /* lets another thread run */
            importer_close(in);
            in = importer_open(kind, shared);
        }
    }
    fuzz_read_chunk(in, data + at, size - at, s);
    if (kind->end != NULL)
        kind->end(in, s);
    importer_close(in);
    if (kind->unshare != NULL && shared != NULL)
        kind->unshare(shared);
}

/* Returns a position in the input, always the same for the same input. */
static inline size_t fuzz_some_place(const uint8_t *data, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(1099511628211);
    return size > 0 ? (size_t)((hash ^ hash >> 32) % size) : 0;
}

static inline void fuzz_check_import(const importer_kind *kind, const uint8_t *data, size_t size)
{
    static const import_about about = {.host = "h", .written_ns = INT64_C(1767363010) * NL_NS_PER_SECOND};
    fuzz_describer whole = {{&fuzz_describer_kind, NULL}, true}, cut = {{&fuzz_describer_kind, NULL}, false};
    sink in_one = {.out = &whole.base, .about = &about}, in_two = {.out = &cut.base, .about = &about};
    char *copy = fuzz_copy(data, size);
    if (kind->detect != NULL)
        kind->detect(copy, size);
    fuzz_import(kind, copy, size, 0, &in_one);
    fuzz_import(kind, copy, size, fuzz_some_place(data, size), &in_two);
    fuzz_expect(in_one.records == in_two.records, "an input that is cut gives as many records");
    fuzz_expect(fuzz_same_bytes(&in_one.bytes, &in_two.bytes), "an input that is cut gives the same records");
    free(copy);
    fuzz_empty_sink(&in_one);
    fuzz_empty_sink(&in_two);
}

#define FUZZ_IMPORTER(kind)                                                                                            \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                                       \
    {                                                                                                                  \
        fuzz_check_import(&kind, data, size);                                                                          \
        return 0;                                                                                                      \
    }

#endif
