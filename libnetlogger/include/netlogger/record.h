/*
 * The record: one event.
 *
 * A record has a time, a host, a program, a level, the name of an event, and any number of fields in the order in which
 * the program logged them. All parts of NetLogger exchange records of this type. ULM, BP, logfmt and the binary format
 * are encodings of a record.
 *
 * The five standard fields are members and do not occur in fields[]. Their names in text are:
 *
 *   member     ULM        BP        logfmt
 *   time_ns    DATE       ts        time
 *   host       HOST       host      host
 *   prog       PROG       prog      prog
 *   level      LVL        level     level
 *   event      NL.EVNT    event     event
 *
 * A string (nl_string) is a pointer and a length. A string need not end with a NUL, and may contain any bytes. The
 * strings of a record that a reader returns belong to the reader and are valid until the next call; nl_record_copy
 * copies a record for longer use. The setters copy their arguments. Replaced values use memory until nl_record_clear.
 * Later versions may append members, so a program must not define objects of type nl_record itself. Two threads may use
 * different records at the same time, but not the same record.
 */
#ifndef NETLOGGER_RECORD_H
#define NETLOGGER_RECORD_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#include <string.h>

NL_BEGIN_DECLS

/*
 * A string of bytes. data is NULL if there is no value, such as a missing HOST. For an empty value, data is not NULL
 * and size is 0.
 */
typedef struct nl_string {
    const char *data;
    size_t size; /* bytes */
} nl_string;

typedef enum nl_type {
    NL_TYPE_STRING =
        0, /* also the type of every value that is read from text; nl_field_int and nl_field_double parse such values */
    NL_TYPE_INT,
    NL_TYPE_UINT,
    NL_TYPE_DOUBLE,
    NL_TYPE_BOOL,
} nl_type;

typedef struct nl_field {
    nl_string name;
    nl_type type;
    union {
        nl_string string;
        int64_t int_value;
        uint64_t uint_value;
        double double_value;
        bool bool_value;
    };
} nl_field;

typedef enum nl_format {
    NL_FORMAT_UNKNOWN = 0,
    NL_FORMAT_ULM,
    NL_FORMAT_BP,
    NL_FORMAT_NLB,    /* blocks of many records (doc/binary-format.md) */
    NL_FORMAT_LOGFMT, /* key=value lines of other programs (doc/text-formats.md) */
} nl_format;

/* Flags of a record. */
#define NL_RECORD_UNTERMINATED 1u /* the text had no newline at its end; the last value may be truncated */
#define NL_RECORD_INCOMPLETE 2u   /* memory ran out while the record was built; no function writes such a record */

typedef struct nl_record {
    int64_t time_ns; /* nanoseconds since 1970 UTC */
    nl_level level;
    nl_string level_text; /* the original spelling of the level, which is written if level is NL_LEVEL_NONE */
    nl_string host;
    nl_string prog;
    nl_string event;
    const nl_field *fields; /* the fields in the order in which they were logged; names may repeat */
    size_t field_count;
    nl_string raw; /* the text from which the record was parsed, without a newline; data is NULL if the record was not
                      parsed from text */
    nl_format raw_format; /* the format of the text in raw */
    unsigned flags;       /* NL_RECORD_... */
} nl_record;

/* Returns a field without a value; name must exist as long as the field. */
static inline nl_field nl_field_named(const char *name, nl_type type)
{
    nl_field field;
    memset(&field, 0, sizeof field);
    field.name.data = name;
    field.name.size = strlen(name);
    field.type = type;
    return field;
}

/*
 * Returns an empty record with the time 0, or NULL if memory runs out. The caller frees the record with nl_record_free.
 * All functions below accept NULL and do nothing.
 */
NL_API nl_record *nl_record_new(void);
NL_API void nl_record_free(nl_record *record);

/* Empties a record from nl_record_new, and keeps some of its memory for reuse. */
NL_API void nl_record_clear(nl_record *record);

/*
 * Makes record a deep copy of source, including raw. The record must be from nl_record_new. If memory runs out, the
 * record has the flag NL_RECORD_INCOMPLETE.
 */
NL_API void nl_record_copy(nl_record *record, const nl_record *source);

/*
 * Set a member of, or add a field to, a record from nl_record_new. The functions copy their arguments and remove raw. A
 * field name consists of letters, digits, '.', '_' and '-', and begins with a letter or '_'. Each other byte becomes
 * '_', and an empty name becomes "_". If memory runs out, the record has the flag NL_RECORD_INCOMPLETE until
 * nl_record_clear.
 */
NL_API void nl_record_set_time(nl_record *record, int64_t time_ns);
NL_API void nl_record_set_level(nl_record *record, nl_level level);
NL_API void nl_record_set_host(nl_record *record, const char *host, size_t size);
NL_API void nl_record_set_prog(nl_record *record, const char *prog, size_t size);
NL_API void nl_record_set_event(nl_record *record, const char *event, size_t size);
NL_API void nl_record_add(nl_record *record, const nl_field *field);

/* Adds a field with the string of size bytes at value. */
static inline void nl_record_add_string(nl_record *record, const char *name, const char *value, size_t size)
{
    nl_field field = nl_field_named(name, NL_TYPE_STRING);
    field.string.data = value;
    field.string.size = size;
    nl_record_add(record, &field);
}

/* Adds a field with a signed integer. */
static inline void nl_record_add_int(nl_record *record, const char *name, int64_t value)
{
    nl_field field = nl_field_named(name, NL_TYPE_INT);
    field.int_value = value;
    nl_record_add(record, &field);
}

/* Adds a field with an unsigned integer. */
static inline void nl_record_add_uint(nl_record *record, const char *name, uint64_t value)
{
    nl_field field = nl_field_named(name, NL_TYPE_UINT);
    field.uint_value = value;
    nl_record_add(record, &field);
}

/* Adds a field with a floating-point number. */
static inline void nl_record_add_double(nl_record *record, const char *name, double value)
{
    nl_field field = nl_field_named(name, NL_TYPE_DOUBLE);
    field.double_value = value;
    nl_record_add(record, &field);
}

/* Adds a field with a boolean value. */
static inline void nl_record_add_bool(nl_record *record, const char *name, bool value)
{
    nl_field field = nl_field_named(name, NL_TYPE_BOOL);
    field.bool_value = value;
    nl_record_add(record, &field);
}

/*
 * Finds the first field with this name, or the standard field with this name in ULM or BP. Names are case-sensitive.
 * Returns true and fills *field, or returns false if the record has no such field. The value of the time (DATE or ts)
 * is time_ns as NL_TYPE_INT; the value of a level is its text. The strings of *field belong to the record.
 */
NL_API bool nl_record_find(const nl_record *record, const char *name, nl_field *field);

/*
 * Return the value of a field as a number. The value must have a numeric type, or be a string that consists only of a
 * decimal number. For nl_field_double, the number may have a fraction and an exponent, or be inf or nan. Otherwise, the
 * functions return false and leave *value unchanged. nl_field_int never rounds: 1.5 and 2^63 are not integers.
 */
NL_API bool nl_field_int(const nl_field *field, int64_t *value);
NL_API bool nl_field_double(const nl_field *field, double *value);

/*
 * Returns the value of a field as text: the bytes of a string, or any other value as ULM writes it, in `scratch`.
 * Parsing the text gives the same value again.
 */
#define NL_FIELD_TEXT_SIZE 40
NL_API nl_string nl_field_text(const nl_field *field, char scratch[NL_FIELD_TEXT_SIZE]);

NL_END_DECLS
#endif
