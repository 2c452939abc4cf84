/*
 * The record: one event.
 *
 * A record says when (time_ns), where (host), who (prog), how urgent (level) and what (event), and carries any number
 * of named fields in the order in which they were logged. Everything in NetLogger produces or consumes this one type;
 * ULM, BP, logfmt and the binary format are encodings of it.
 *
 * The five standard fields are members and are not repeated in fields[]. They go by these names in text:
 *
 *   member     ULM        BP        logfmt
 *   time_ns    DATE       ts        time
 *   host       HOST       host      host
 *   prog       PROG       prog      prog
 *   level      LVL        level     level
 *   event      NL.EVNT    event     event
 *
 * Strings are views: bytes with a length, not NUL-terminated, holding any bytes at all. Those of a record that a reader
 * or decoder hands out belong to it and last until its next call; nl_record_copy keeps one for longer. The setters copy
 * what they are given; what they replace is freed by nl_record_clear only. Members may be appended in later versions: a
 * program never makes a struct nl_record of its own. Different records may be used by different threads at once, one
 * record may not.
 */
#ifndef NETLOGGER_RECORD_H
#define NETLOGGER_RECORD_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

/* A view of bytes; data is NULL when there is no value at all (an absent HOST), size 0 with data when it is empty. */
typedef struct nl_string {
    const char *data;
    size_t size; /* bytes */
} nl_string;

typedef enum nl_type {
    NL_TYPE_STRING = 0, /* also every value that was read from text: nl_field_int and its like read numbers from it */
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
    NL_FORMAT_NLB,    /* the binary format (doc/binary-format.md): blocks of many records */
    NL_FORMAT_LOGFMT, /* key=value text of other programs (doc/text-formats.md) */
} nl_format;

/* Flags of a record. */
#define NL_RECORD_UNTERMINATED 1u /* the text ended without a newline: the last value may be cut short */
#define NL_RECORD_INCOMPLETE 2u   /* memory ran out while the record was made: no function writes it */

typedef struct nl_record {
    int64_t time_ns;
    nl_level level;
    nl_string level_text; /* as it was spelt; what is written when level is NL_LEVEL_NONE */
    nl_string host;
    nl_string prog;
    nl_string event;
    const nl_field *fields; /* in the order in which they were logged; names may repeat */
    size_t field_count;
    nl_string raw; /* the text it was read from, without newline; data is NULL when it was made or changed here */
    nl_format raw_format; /* of raw */
    unsigned flags;       /* NL_RECORD_... */
} nl_record;

/*
 * A new record at time 0 with nothing in it, to be freed with nl_record_free (NULL is allowed there). NULL when there
 * is no memory; the setters below accept that and do nothing.
 */
NL_API nl_record *nl_record_new(void);
NL_API void nl_record_free(nl_record *record);

/* Empties a record of the caller's own, keeping its memory for what comes next. */
NL_API void nl_record_clear(nl_record *record);

/* Makes record a deep copy of source, raw text included. record is one from nl_record_new. */
NL_API void nl_record_copy(nl_record *record, const nl_record *source);

/*
 * Set or add to a record from nl_record_new. Bytes are copied. Each forgets raw. A field name is one or more letters,
 * digits, '.', '_' or '-', the first a letter or '_'; any other byte in it becomes '_'. An empty name becomes "_". When
 * memory runs out the record is marked as incomplete until it is cleared.
 */
NL_API void nl_record_set_time(nl_record *record, int64_t time_ns);
NL_API void nl_record_set_level(nl_record *record, nl_level level);
NL_API void nl_record_set_host(nl_record *record, const char *host, size_t size);
NL_API void nl_record_set_prog(nl_record *record, const char *prog, size_t size);
NL_API void nl_record_set_event(nl_record *record, const char *event, size_t size);
NL_API void nl_record_add_string(nl_record *record, const char *name, const char *value, size_t size);
NL_API void nl_record_add_int(nl_record *record, const char *name, int64_t value);
NL_API void nl_record_add_uint(nl_record *record, const char *name, uint64_t value);
NL_API void nl_record_add_double(nl_record *record, const char *name, double value);
NL_API void nl_record_add_bool(nl_record *record, const char *name, bool value);

/*
 * Finds a field by name (NUL-terminated, case matters), a standard one by either of its names; the first when it
 * repeats. True and *field filled when the record has it. DATE and ts give an NL_TYPE_INT of time_ns, the level its
 * text. The bytes belong to the record.
 */
NL_API bool nl_record_find(const nl_record *record, const char *name, nl_field *field);

/*
 * A field's value as a number. True when it is one: of a numeric type, or a string that is a number from first byte to
 * last (decimal integer; for double also a fraction and an exponent, inf, nan). Never rounds: 1.5 is no int, nor is
 * 2^63.
 */
NL_API bool nl_field_int(const nl_field *field, int64_t *value);
NL_API bool nl_field_double(const nl_field *field, double *value);

/*
 * A field's value as text: a string's own bytes, or any other value written as ULM writes it into scratch (at least
 * NL_FIELD_TEXT_SIZE bytes), so that reading it back gives the same value.
 */
#define NL_FIELD_TEXT_SIZE 40
NL_API nl_string nl_field_text(const nl_field *field, char scratch[NL_FIELD_TEXT_SIZE]);

NL_END_DECLS
#endif
