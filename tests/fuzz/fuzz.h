/*
 * What the fuzz targets share.
 *
 * A target is one file with LLVMFuzzerTestOneInput, which does with the input what a stranger could make the library
 * do, and aborts when a property that must hold does not. tests/fuzz/run links it to libFuzzer and lets that invent
 * inputs; replay.c links it to a plain main that goes through its corpus, in every `make check`.
 */
#ifndef NETLOGGER_TESTS_FUZZ_H
#define NETLOGGER_TESTS_FUZZ_H

#include <netlogger.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Always 0; the name and the type are libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property of the library: without it the process aborts, which is what the fuzzer and the replay look for. */
static inline void fuzz_expect(bool holds, const char *property)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", property);
    abort();
}

/* The bytes in memory of exactly that size, so that a sanitizer sees a read beyond them. Freed by the caller. */
static inline char *fuzz_copy(const void *data, size_t size)
{
    char *copy = calloc(1, size > 0 ? size : 1);
    fuzz_expect(copy != NULL, "there is memory");
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static inline bool fuzz_same_bytes(const nl_buffer *a, const nl_buffer *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static inline void fuzz_put_number(nl_buffer *out, int64_t number)
{
    nl_buffer_append(out, &number, sizeof number);
}

/* Its size before it, so that no two rows of strings look alike; -1 for one that is absent. */
static inline void fuzz_put_string(nl_buffer *out, nl_string string)
{
    fuzz_put_number(out, string.data == NULL ? -1 : (int64_t)string.size);
    if (string.size > 0)
        nl_buffer_append(out, string.data, string.size);
}

/*
 * Appends all that a record means: equal for equal records, whatever text they came from. How a known level was spelt
 * is left out, for a format writes its own name for it.
 */
static inline void fuzz_put_record(nl_buffer *out, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    fuzz_put_number(out, record->time_ns);
    fuzz_put_number(out, record->level);
    if (record->level == NL_LEVEL_NONE)
        fuzz_put_string(out, record->level_text);
    fuzz_put_string(out, record->host);
    fuzz_put_string(out, record->prog);
    fuzz_put_string(out, record->event);
    fuzz_put_number(out, (int64_t)record->field_count);
    for (size_t i = 0; i < record->field_count; i++) {
        fuzz_put_string(out, record->fields[i].name);
        fuzz_put_string(out, nl_field_text(&record->fields[i], scratch));
    }
}

#endif
