/*
 * Common functions of the fuzz targets.
 *
 * A target is one file with LLVMFuzzerTestOneInput. It processes the input like data from an unknown sender, and aborts
 * if a required property does not hold. tests/fuzz/run links the target to libFuzzer, which invents inputs. replay.c
 * links it to a main function that processes the target's corpus in every `make check`.
 */
#ifndef NETLOGGER_TESTS_FUZZ_H
#define NETLOGGER_TESTS_FUZZ_H

#include <netlogger.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Always returns 0. libFuzzer requires the name and the type. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks a property of the library. Aborts if it does not hold; the fuzzer and the replay detect the abort. */
static inline void fuzz_expect(bool holds, const char *property)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", property);
    abort();
}

/* Returns the bytes in memory of exactly that size, so that a sanitizer detects a read beyond it. The caller frees it.
 */
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

/* Writes the size before the string, so that different lists of strings differ; -1 for an absent string. */
static inline void fuzz_put_string(nl_buffer *out, nl_string string)
{
    fuzz_put_number(out, string.data == NULL ? -1 : (int64_t)string.size);
    if (string.size > 0)
        nl_buffer_append(out, string.data, string.size);
}

/*
 * Appends the whole meaning of a record: equal records give equal bytes, even if their texts differ. The spelling of a
 * known level is omitted, because a format writes its own name for the level.
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
