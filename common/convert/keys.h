/*
 * Names of fields as keys of formats in which a key may be there only once: JSON, CSV, OTLP.
 *
 * The standard fields go by their BP names: ts, event, level, host, prog. Every other field's key is its name, and for
 * the second of that name NAME#2, and so on; a field that is called like a standard one in either text format (ts,
 * DATE, HOST ...) begins with #2 too. No name holds a #, so that a key tells its name.
 */
#ifndef NETLOGGER_CONVERT_KEYS_H
#define NETLOGGER_CONVERT_KEYS_H

#include "program/encoding.h"

#include <netlogger.h>

typedef enum member { MEMBER_NONE, MEMBER_TIME, MEMBER_EVENT, MEMBER_LEVEL, MEMBER_HOST, MEMBER_PROG } member;

/* The standard field of that name in ULM or BP. */
member member_of(nl_string name);

/* Counts the names of one record after the other. Zeroes at first. */
typedef struct keys {
    struct keys_slot *slots;
    size_t slot_count; /* a power of two */
    uint32_t generation;
    uint64_t seed;
} keys;

/* Begins a record with so many fields. */
void keys_begin(keys *k, size_t field_count);

/* The place of a field among those of its name in the record, from 1: what belongs behind the # when it is not 1. The
 * name must stay where it is until the next record. */
uint32_t keys_count(keys *k, nl_string name);
void keys_free(keys *k);

/* Appends the key of a field. */
void keys_put(keys *k, nl_string name, nl_buffer *out);

/* The name in a key: what is before "#" and digits at its end. *repeated is whether there was such an end. */
nl_string key_name(nl_string key, bool *repeated);

#endif
