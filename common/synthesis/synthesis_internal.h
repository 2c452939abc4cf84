/*
 * Declarations that the files of this directory share.
 *
 * rules.c reads a file into rules. A rule, such as a span or a sum, has clauses. A clause defines which events the rule
 * uses, and how it uses them. The first event with a name creates a source for the name. The source has the clauses
 * whose patterns match the name, and the fields that these clauses need. A record with this name becomes an event. The
 * event has the record's time, these fields, and a bit for each clause whose filter matches. Events wait in queue.c,
 * sorted by time. Then each event goes to the clauses that use it. The rules derive records (make.c), which immediately
 * go to later rules in the file. Therefore, rules can build on each other, but not in cycles.
 */
#ifndef NETLOGGER_SYNTHESIS_INTERNAL_H
#define NETLOGGER_SYNTHESIS_INTERNAL_H

#include "base/distribution.h"
#include "synthesis/synthesis.h"

#include <glib.h>

enum { KEYS_MAX = 6, CLAUSES_MAX = 64, ENTRIES_MAX = 1 << 20, LABELS_MAX = 24, LEARN_MAX = 4 };
enum { NO_FIELD = ~0u };

/* ---- values ---- */

/* A text. Equal texts are the same object, so their pointers can be compared. */
typedef struct text {
    nl_string string;
    struct source *source; /* source of the events that have this text as their name */
    bool has_source;       /* `source` has been determined, and may be NULL */
    char data[];
} text;

typedef enum value_kind { VALUE_NONE, VALUE_INT, VALUE_UINT, VALUE_DOUBLE, VALUE_TEXT } value_kind;

/* The value of a field. A text that is an integer without leading zeros becomes a number. */
typedef struct value {
    value_kind kind;
    union {
        int64_t number;
        double real;
        const text *text;
    };
} value;

typedef struct key {
    value values[KEYS_MAX];
    unsigned count;
} key;

/*
 * The state that a rule keeps for a key. Each kind of rule has its own structure, whose first member is this structure.
 */
typedef struct entry {
    key key;
} entry;

/* Tables of texts, and of entries with their keys. free_entry frees an entry when the table removes it. */
GHashTable *texts_new(void);
text *texts_intern(GHashTable *texts, nl_string string);
GHashTable *map_new(void (*free_entry)(void *e));

/*
 * Returns the entry of a key. If the key is new, adds an entry of `size` bytes, which is zero except for the key.
 * Returns NULL if the map is full.
 */
void *map_find_or_add(GHashTable *map, const key *k, size_t size);

/* Removes the entry of a key, and returns the entry, which the caller frees. Returns NULL if the key has no entry. */
void *map_take(GHashTable *map, const key *k);

value value_of_field(GHashTable *texts, const nl_field *field);
value value_of_text(GHashTable *texts, nl_string string);
bool value_is_equal(value a, value b);
bool value_number(value v, double *number);
void value_add(nl_record *record, const char *name, value v);
nl_string value_text(value v, char scratch[NL_FIELD_TEXT_SIZE]);

/* ---- the file ---- */

typedef enum side { SIDE_ANY, SIDE_BEGIN, SIDE_END } side;

typedef struct making making;

/* Converts the value of a field for a derived record. */
typedef value converter(nl_synthesis *s, const making *m, value v);

/* A field of derived records. */
struct making {
    char *name;
    side side;
    unsigned field;     /* number of a field name; NO_FIELD means that the value is literal */
    converter *convert; /* NULL means that the value is copied */
    const struct table *table;
    value literal;
};

typedef struct table {
    char *name;
    value *keys, *values;
    size_t count;
} table;

/* A rule processes an event's clauses in this order. */
typedef enum role {
    ROLE_END,
    ROLE_CANCEL,
    ROLE_UNMARK,
    ROLE_BECOMES,
    ROLE_WAIT,
    ROLE_STATE,
    ROLE_SEGMENT,
    ROLE_PASS,
    ROLE_STEP,
    ROLE_LEAVE,
    ROLE_MARK,
    ROLE_BEGIN,
    ROLE_OF
} role;

/* The carrier of a request: a kind, such as a thread, and the field that identifies the carrier. */
typedef struct carrier {
    value kind;
    unsigned field;
} carrier;

typedef struct clause {
    struct rule *rule;
    role role;
    char **patterns; /* globs that match event names */
    size_t pattern_count;
    unsigned keys[KEYS_MAX]; /* numbers of names */
    unsigned key_count;
    carrier from, to;
    unsigned id; /* in the begin clause of a follow rule: number of the field with the request's number, or NO_FIELD */
    unsigned label;  /* in states rules: index of the state */
    unsigned unless; /* in states rules: index of the state in which the rule ignores the clause, or NO_FIELD */
    char *as;        /* in follow rules: the name of the step; NULL means the last part of the event's name */
    bool move;       /* in pass clauses: remove the request from the carrier that passes it */
    nl_filter *where;
    unsigned line;
} clause;

typedef struct event event;

typedef enum rule_kind {
    RULE_MAKE,
    RULE_SPAN,
    RULE_SUM,
    RULE_RATE,
    RULE_HISTOGRAM,
    RULE_STATES,
    RULE_FOLLOW
} rule_kind;

typedef struct rule {
    rule_kind kind;
    void (*take)(nl_synthesis *s, const clause *c, event *e);
    char *name;
    clause *clauses;
    size_t clause_count;
    making *makings; /* the fields of derived records */
    size_t making_count;
    unsigned value_field; /* for sums: number of the field to sum; NO_FIELD means that the rule only counts events */
    int64_t every_ns;     /* for sums: the interval; 0 means one interval for all events */
    int64_t longest_ns;   /* for spans and follows: the maximum duration; 0 means no maximum */
    bool keep;            /* for spans: ignore a second begin event */
    bool pair;            /* for spans: derive a record for each end event */
    bool segments;        /* for states: derive a record for each segment */
    bool changes;         /* for states: derive a record for each state */
    bool overlay;         /* for states: marks override the state */
    char *labels[LABELS_MAX]; /* for states: the names of the states */
    unsigned label_count;

    GHashTable *entries;
    int64_t next_ns; /* for sums: the end of the interval; INT64_MIN if it has not started */
    uint64_t number; /* for follows: the number of requests */
} rule;

static inline bool rule_is_sum(const rule *r)
{
    return r->kind == RULE_SUM || r->kind == RULE_RATE || r->kind == RULE_HISTOGRAM;
}

/* ---- events ---- */

/* The clauses that use the events with one name, and the fields that these clauses need. */
typedef struct source {
    const text *name;
    clause *clauses[CLAUSES_MAX]; /* ordered by rule, then by role */
    unsigned clause_count;
    unsigned *needed; /* numbers of names */
    unsigned needed_count;
    unsigned *slots; /* indexed by the number of a field name: index in an event's values + 1; 0 if the clauses do not
                        need the field */
} source;

struct event {
    int64_t time_ns;
    uint64_t order, mask; /* mask: bit i is set if the filter of clause i of the source matches */
    const source *source; /* NULL means that events were lost */
    unsigned references;
    value host, prog;
    value values[];
};

struct nl_synthesis {
    GHashTable *texts;
    char **names; /* field names, indexed by number */
    size_t name_count;
    rule *rules; /* never reallocated */
    size_t rule_count;
    table *tables;
    size_t table_count;

    /* Whether rules use the names of threads and of functions. */
    bool wants_programs, wants_symbols;
    nl_symbol_finder *find_symbol; /* NULL if names are unknown */
    void *symbol_user;
    unsigned tid_field, learn_tid[LEARN_MAX], learn_name[LEARN_MAX];
    GHashTable *programs;

    event **waiting;
    size_t waiting_count, waiting_capacity, sorted;
    uint64_t order;
    int64_t now_ns; /* the latest time of a processed event, or of nl_synthesis_advance */

    GQueue made;      /* derived records */
    nl_record *given; /* the last record that nl_synthesis_next returned */
    nl_synthesis_stats stats;
};

/* rules.c */
bool rules_read(nl_synthesis *s, const nl_sections *sections);
void rules_free(nl_synthesis *s);

/*
 * Functions of queue.c. A record that the rule `maker` has derived goes to later rules immediately. If `maker` is NULL,
 * the record waits.
 */
void queue_take(nl_synthesis *s, const nl_record *record, const rule *maker);
bool clause_concerns(const clause *c, const char *name); /* a pattern of the clause matches the name of an event */
event *event_hold(event *e);
void event_release(event *e);
value event_value(const event *e, unsigned field);
bool event_key(const event *e, const clause *c, key *k);

/* make.c */
converter *find_converter(const char *name, size_t size);
value convert_by_table(nl_synthesis *s, const making *m, value v);
value convert_program(nl_synthesis *s, const making *m, value v);
value convert_symbol(nl_synthesis *s, const making *m, value v);
nl_record *make_record(const rule *r, const char *suffix, int64_t time_ns, const event *like);
void make_fields(nl_synthesis *s, nl_record *record, const rule *r, const event *begin, const event *end);
void make_put(nl_synthesis *s, const rule *r, nl_record *record); /* takes ownership of record */
void add_time(nl_record *record, const char *name, int64_t time_ns);
void learn_programs(nl_synthesis *s, const event *e);

/* The functions of each kind of rule. */
void make_take(nl_synthesis *s, const clause *c, event *e);
void span_take(nl_synthesis *s, const clause *c, event *e);
void span_free(void *e);
void sum_take(nl_synthesis *s, const clause *c, event *e);
void sum_advance(nl_synthesis *s, rule *r, int64_t now_ns);
void sum_finish(nl_synthesis *s, rule *r);
void sum_free(void *e);
void states_take(nl_synthesis *s, const clause *c, event *e);
void states_free(void *e);
void follow_take(nl_synthesis *s, const clause *c, event *e);
void follow_free(void *e);

#endif
