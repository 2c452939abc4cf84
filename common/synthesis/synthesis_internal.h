/*
 * How synthesis works.
 *
 * rules.c reads the file into rules; a rule is a span, sum, states or follow, and has clauses: which events concern it,
 * and how. Each event's name, when it is met first, becomes a source: the clauses that it matches, and the fields that
 * they want. A record of it becomes an event: its time and these fields, interned, and a bit for each clause whose
 * filter is true of it. Events wait in queue.c until their time has come, and are then handed clause by clause to the
 * rules (make.c, span.c, sum.c, states.c, follow.c), which make records (make.c). Those are handed to the rules
 * further down in the file at once, so that rules can build on each other, and never in a circle.
 */
#ifndef NETLOGGER_SYNTHESIS_INTERNAL_H
#define NETLOGGER_SYNTHESIS_INTERNAL_H

#include "base/distribution.h"
#include "synthesis/sections.h"
#include "synthesis/symbols.h"

enum { KEYS_MAX = 6, CLAUSES_MAX = 64, ENTRIES_MAX = 1 << 20 };

/* ---- values ---- */

typedef struct text {
    struct text *next; /* in its bucket */
    uint64_t hash;
    struct source *source; /* of an event that is called so */
    bool looked;           /* whether that is known */
    size_t size;
    char data[];
} text;

typedef enum value_kind { VALUE_NONE, VALUE_INT, VALUE_UINT, VALUE_DOUBLE, VALUE_TEXT } value_kind;

/* Texts are interned: equal ones are the same. Digits are a number, wherever they come from. */
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

/* What is kept for a key; a rule's own struct begins with it. */
typedef struct entry {
    struct entry *next;
    uint64_t hash;
    key key;
} entry;

typedef struct map {
    entry **buckets;
    size_t bucket_count, count;
} map;

typedef struct texts {
    text **buckets;
    size_t bucket_count, count;
} texts;

text *texts_intern(texts *t, const char *data, size_t size);
void texts_free(texts *t);

value value_of_field(texts *t, const nl_field *field);
value value_of_text(texts *t, nl_string string);
bool value_number(value v, double *number);
void value_add(nl_record *record, const char *name, value v);
nl_string value_text(value v, char scratch[NL_FIELD_TEXT_SIZE]);

/* Makes count keys of one kind alike, so that what is not used does not count. */
entry *map_find(const map *m, const key *k);
/* Finds it, or adds one of size bytes, zeros but for the key. NULL when there are too many. */
entry *map_put(map *m, const key *k, size_t size, bool *added);
/* Takes it out; the entry is the caller's. NULL when there is none. */
entry *map_take(map *m, const key *k);
/* Calls visit on each; those that it returns true of are taken out, and visit has freed them. */
void map_visit(map *m, bool (*visit)(entry *e, void *user), void *user);
void map_free(map *m, bool (*visit)(entry *e, void *user), void *user);

/* ---- what the file says ---- */

/* A field that is made: its name, and from what. */
typedef enum side { SIDE_ANY, SIDE_BEGIN, SIDE_END } side;
typedef enum function {
    FUNCTION_NONE,
    FUNCTION_PROGRAM,
    FUNCTION_ADDRESS,
    FUNCTION_SYSCALL,
    FUNCTION_SYMBOL,
    FUNCTION_HEXADECIMAL,
    FUNCTION_DEVICE,
    FUNCTION_TABLE,
    FUNCTION_LITERAL
} function;

typedef struct making {
    char *name;
    side side;
    function function;
    unsigned field; /* number of a name */
    const struct table *table;
    value literal;
} making;

typedef struct table {
    char *name;
    key *keys; /* of one value each, with what stands for them */
    value *values;
    size_t count;
} table;

/* In the order in which a rule is handed what concerns it. */
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

/* What carries a request: a kind of thing, and the fields that name one. */
typedef struct carrier {
    value kind;
    unsigned field;
} carrier;

typedef struct clause {
    struct rule *rule;
    role role;
    char **patterns; /* globs of events' names */
    size_t pattern_count;
    unsigned keys[KEYS_MAX]; /* numbers of names */
    unsigned key_count;
    carrier from, to;
    unsigned id;     /* of a follow's begin: the field that numbers the request; NO_FIELD */
    unsigned label;  /* of states: which one */
    unsigned unless; /* of a state: not when it is in that one; NO_FIELD */
    char *as;        /* of a follow: what the step is called; NULL: as the last part of its event */
    bool move;       /* of a pass: it is not carried by both */
    nl_filter *where;
    unsigned line;
} clause;

enum { NO_FIELD = ~0u, LABELS_MAX = 24 };

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
    char *name;
    clause *clauses;
    size_t clause_count;
    making *makings; /* fields that it makes */
    size_t making_count;
    unsigned key_names[KEYS_MAX]; /* of a sum: what its keys are called */
    unsigned value_field;         /* of a sum; NO_FIELD: they are counted only */
    int64_t every_ns;             /* of a sum; 0: at the end */
    int64_t longest_ns;           /* of spans and follows: what lasts longer is forgotten; 0: nothing */
    bool keep;                    /* of a span: begun again, it goes on */
    bool pair;                    /* of a span: both ends become records */
    bool segments;                /* of states: each becomes a record */
    bool changes;                 /* of states: each change becomes a record */
    bool overlay;                 /* of states: marks do not only say what waits are for */
    char *labels[LABELS_MAX];     /* of states */
    unsigned label_count;

    map entries;
    int64_t next_ns; /* of a sum: when its interval ends; INT64_MIN before it has begun */
    uint64_t number; /* of a follow: requests so far */
} rule;

/* ---- what happens ---- */

/* An event's name, with what is wanted of its records. */
typedef struct source {
    const text *name;
    clause **clauses; /* in the order of rules and roles */
    unsigned clause_count;
    unsigned *wanted; /* numbers of names */
    char **wanted_names;
    unsigned wanted_count;
    unsigned *slots; /* by number of a name: one and its place in values; 0: not wanted */
    size_t slot_count;
} source;

typedef struct event {
    int64_t time_ns;
    uint64_t order, mask; /* mask: the clauses that are meant */
    const source *source;
    unsigned references;
    value host, prog;
    value values[];
} event;

struct nl_synthesis {
    texts texts;
    char **names; /* of fields, by number */
    size_t name_count;
    rule *rules; /* never moves: its size is known before the first is read */
    size_t rule_count;
    table *tables;
    size_t table_count;

    /* Names of threads. */
    bool wants_programs, wants_symbols;
    nl_symbol_finder *find_symbol; /* NULL: addresses stay numbers */
    void *symbol_user;
    unsigned tid_field, learn_tid[4], learn_name[4];
    map programs;

    event **waiting;
    size_t waiting_count, waiting_capacity, sorted;
    uint64_t order;
    int64_t now_ns; /* what was taken is no later */

    nl_record **made; /* a ring */
    size_t made_first, made_count, made_capacity;
    nl_record **spare;
    size_t spare_count;
    nl_record *given;
    nl_synthesis_stats stats;
};

/* rules.c */
bool rules_read(nl_synthesis *s, const nl_sections *sections);
void rules_free(nl_synthesis *s);
unsigned name_number(nl_synthesis *s, const char *name);

/* queue.c: events, and what becomes of them */
/* maker: the rule that made it, when it is one of ours: it is then for the rules below only, and at once. */
void queue_take(nl_synthesis *s, const nl_record *record, const rule *maker);
event *event_hold(event *e);
void event_release(event *e);
value event_value(const event *e, unsigned field);
bool event_key(const event *e, const clause *c, key *k);
/* All that is open is forgotten: events are missing. */
void forget_all(nl_synthesis *s);

/* make.c: records */
nl_record *make_record(nl_synthesis *s, const rule *r, const char *suffix, int64_t time_ns, const event *like);
void make_fields(nl_synthesis *s, nl_record *record, const rule *r, const event *begin, const event *end);
value making_value(nl_synthesis *s, const making *m, const event *begin, const event *end);
/* Hands it to the rules below, and out. */
void make_put(nl_synthesis *s, const rule *r, nl_record *record);
void add_time(nl_record *record, const char *name, int64_t time_ns);
void learn_programs(nl_synthesis *s, const event *e);

/* The kinds of rules. */
void make_take(nl_synthesis *s, rule *r, event *e);
void span_take(nl_synthesis *s, rule *r, const clause *c, event *e);
void span_forget(nl_synthesis *s, rule *r);
void sum_take(nl_synthesis *s, rule *r, const clause *c, event *e);
void sum_advance(nl_synthesis *s, rule *r, int64_t now_ns);
void sum_finish(nl_synthesis *s, rule *r);
void sum_free(rule *r);
void states_take(nl_synthesis *s, rule *r, const clause *c, event *e);
void states_forget(nl_synthesis *s, rule *r);
void follow_take(nl_synthesis *s, rule *r, const clause *c, event *e);
void follow_forget(nl_synthesis *s, rule *r);

#endif
