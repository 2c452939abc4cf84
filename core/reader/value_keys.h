/*
 * The keys under which a value index (value_index.h) finds the values of fields. A key is a hash of a field's name and
 * value. If a test FIELD == VALUE is true for a record (doc/expressions.md), then the key of the operand is among the
 * keys of the record. Therefore, a text that represents a number has the key of that number.
 *
 * nl_value_keys collects the keys of records, lines or blocks. If it cannot collect all keys, it sets `unknown`. Only
 * one thread at a time may use it.
 */
#ifndef NETLOGGER_READER_VALUE_KEYS_H
#define NETLOGGER_READER_VALUE_KEYS_H

#include "filter/filter.h"

#include <netlogger.h>

enum { NL_VALUE_FIELDS_MAX = 4, NL_VALUE_NAME_MAX = 64 };

/* Names of the fields whose values are indexed. */
typedef struct nl_value_fields {
    size_t count;
    char names[NL_VALUE_FIELDS_MAX][NL_VALUE_NAME_MAX + 1];
} nl_value_fields;

/*
 * Adds a name to the list. Does not add a duplicate, a name that is too long, a name beyond the maximum number, or the
 * name of a standard field (also after "_."). Returns whether the list contains the name afterwards.
 */
bool nl_value_fields_add(nl_value_fields *fields, const char *name, size_t size);

typedef struct nl_value_keys {
    nl_value_fields fields; /* set by nl_value_keys_begin */
    nl_string names[NL_VALUE_FIELDS_MAX];
    uint64_t seeds[NL_VALUE_FIELDS_MAX];
    nl_buffer keys; /* uint64_t; a key may occur repeatedly */
    uint64_t latest;
    bool unknown; /* keys are missing */
    nl_record *scratch;
} nl_value_keys;

/* Sets the fields of an initialized or zeroed structure, and removes all keys. */
void nl_value_keys_begin(nl_value_keys *k, const nl_value_fields *fields);
void nl_value_keys_free(nl_value_keys *k);

static inline size_t nl_value_keys_count(const nl_value_keys *k)
{
    return k->keys.size / sizeof(uint64_t);
}

/* Removes all keys. */
static inline void nl_value_keys_clear(nl_value_keys *k)
{
    k->keys.size = 0;
    k->latest = 0;
    k->unknown = false;
}

/*
 * Add the keys of a record, of whole lines in a text format, or of the records of a block that was just opened. If
 * lines may have fields without values, their keys are unknown (only_pairs in format.h).
 */
void nl_value_keys_add_record(nl_value_keys *k, const nl_record *record);
void nl_value_keys_add_lines(nl_value_keys *k, nl_format format, const char *text, size_t size);
struct nl_block_reader;
void nl_value_keys_add_block(nl_value_keys *k, const struct nl_block_reader *reader);

/* Returns the seed for the keys of a field's values. */
uint64_t nl_value_seed(nl_string name);

/* Returns the key of an operand of a test; `index` counts all operands of the filter (nl_filter_equality). */
uint64_t nl_value_key_of_operand(uint64_t seed, const nl_filter *filter, size_t index);

#endif
