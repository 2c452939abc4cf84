/*
 * The store: all records of some logs in order of time, 30 bytes each, and what a drawing needs of them. No GTK.
 *
 * A record here is its time, the names of its event, host and program (as numbers), the place of its text in the log,
 * which is asked for all else, and, as a step of an object, the object's number and the step before it: from an
 * object's last step back one comes through all of it. Records are known by their numbers in the order of time; those
 * that came late are put where they belong.
 *
 * What is drawn are lists (list.h): of the ends of lifelines' segments, by the rows that they join; of objects' first
 * steps, by row; of loadlines' values, by host; of points. An event of which the drawing says nothing becomes a point
 * where the store is told to look out for those.
 *
 * Arrays come in chunks of 65536 records, so that nothing is moved as a log grows, that old ones can be dropped, and
 * that a saved index is mapped as it is (index.h). No locks here: the model has one.
 */
#ifndef NLV_STORE_H
#define NLV_STORE_H

#include "model/batch.h"
#include "model/list.h"

enum {
    STORE_CHUNK = 1 << 16,
    STORE_MARK = 1 << 12,
    STORE_NONE = 0xffffffff,
    STORE_POINTS_MAX = 24,
    STORE_HOSTS_MAX = 4096
};

typedef struct chunk {
    int64_t *times;
    uint64_t *places;
    uint16_t *events, *hosts, *progs;
    uint32_t *objects[SPEC_LAYERS], *previous[SPEC_LAYERS]; /* STORE_NONE: of none; the first */
    bool borrowed;                                          /* of a mapped index */
} chunk;

/* Objects' tables, in chunks too. */
typedef struct objects_chunk {
    uint64_t *keys;
    uint32_t *last;   /* step; STORE_NONE while there is none */
    uint16_t *colors; /* by host, program or field's value: see the lifeline */
    bool borrowed;
} objects_chunk;

typedef struct objects {
    objects_chunk *chunks;
    uint32_t count, capacity;
    uint32_t *slots; /* open addressing, a number + 1; NULL until an object is looked for */
    size_t slot_count;
} objects;

typedef struct lifeline_lists {
    unsigned rows;
    list **segments; /* [from row * rows + to row], NULL when there is none */
    list **starts;   /* [row] */
} lifeline_lists;

typedef struct host_list {
    uint16_t host;
    list *list;
} host_list;

typedef struct loadline_lists {
    host_list *hosts; /* in the order in which they came */
    size_t count;
} loadline_lists;

typedef struct store {
    spec *spec;
    batch_names names;
    chunk *chunks;
    int64_t *marks;    /* the times of every so many records, STORE_MARK, beside each other */
    uint32_t count;    /* of records, those that were dropped too */
    uint32_t first;    /* the first that was not dropped */
    uint32_t capacity; /* of chunks */
    objects objects[SPEC_LAYERS];
    lifeline_lists *lifelines;
    loadline_lists *loadlines;
    list *points;          /* those of the spec, then those that were found */
    uint16_t *found;       /* the events of the latter */
    size_t point_count;    /* of both */
    bool looks_out;        /* for events that the drawing does not have */
    uint32_t *visits;      /* by host: how often an object came there */
    uint8_t *point_hosts;  /* by host: whether there is a point on it */
    batch late;            /* records before those that are here already, until it is worth while to move these */
    int64_t earliest_late; /* time of them */
    void *mapped;          /* the index that chunks and lists are borrowed from; NULL: none */
    size_t mapped_size;
    int mapped_fd;      /* its file */
    uint64_t unordered; /* so many records came after later ones */
    uint64_t rejected;  /* records that were older than all that are left, or beyond STORE_NONE */
    uint32_t colored;   /* so many records were there when objects were last given their colours */
} store;

/* Takes over the spec; names are those that it was made with. */
store *store_new(spec *s, batch_names names, bool looks_out);
void store_free(store *s);

/* Adds what is in a batch, which is changed, in any order. */
void store_append(store *s, batch *b);

/* Puts late records in their places. */
void store_settle(store *s);

/*
 * Gives objects their colours anew, when there are many more than when it was last done, and lets lists know of them.
 * Who draws meanwhile finds some of the old ones, some of the new.
 */
void store_color_objects(store *s);

/* The bytes of memory of a store, without what is mapped, and with what putting late records in place will need. */
size_t store_memory(const store *s);

/* Forgets the oldest records until the store needs at most limit bytes. Returns false if it still needs more. */
bool store_shrink(store *s, size_t limit);

/* The number of records that were forgotten or rejected. */
static inline uint64_t store_missing(const store *s)
{
    return s->first + s->rejected;
}

/* The list of a loadline's values on a host, made when there is none; NULL for hosts beyond STORE_HOSTS_MAX. */
list *store_loadline_list(store *s, uint16_t loadline, uint16_t host);

/* The first record that is not before a time; count when there is none. */
uint32_t store_find_time(const store *s, int64_t time_ns);

/* The same to STORE_MARK records: the next one whose time is beside others'. */
uint32_t store_find_time_near(const store *s, int64_t time_ns);

/* What the log itself says of a host's clock at some record's time. */
typedef struct store_clock {
    bool is_known;
    bool is_measured;       /* against the collector's clock; otherwise it is what the host says */
    double low_ns, high_ns; /* between these is what is to be added to its times */
} store_clock;
store_clock store_clock_at(const store *s, uint16_t host, uint32_t record);

/* The measurement by which a host's clock was off the most; not known where none says that it was off at all. */
store_clock store_clock_furthest(const store *s, uint16_t host);

/* The same as store_clock_at of measurements alone, and of what the host says alone. */
store_clock store_clock_measured(const store *s, uint16_t host, uint32_t record);
store_clock store_clock_said(const store *s, uint16_t host, uint32_t record);

/* The measure of the end of a segment in a layer: how many nanoseconds it took. */
typedef struct segment_measure {
    const store *store;
    unsigned layer;
} segment_measure;
float store_segment_ns(const void *measure, uint32_t record);

static inline const chunk *store_chunk(const store *s, uint32_t record)
{
    return &s->chunks[record / STORE_CHUNK];
}

static inline int64_t store_time(const store *s, uint32_t record)
{
    return store_chunk(s, record)->times[record % STORE_CHUNK];
}

static inline uint64_t store_place(const store *s, uint32_t record)
{
    return store_chunk(s, record)->places[record % STORE_CHUNK];
}

static inline uint16_t store_event(const store *s, uint32_t record)
{
    return store_chunk(s, record)->events[record % STORE_CHUNK];
}

static inline uint16_t store_host(const store *s, uint32_t record)
{
    return store_chunk(s, record)->hosts[record % STORE_CHUNK];
}

static inline uint16_t store_prog(const store *s, uint32_t record)
{
    return store_chunk(s, record)->progs[record % STORE_CHUNK];
}

/* STORE_NONE when it is a step of none. */
static inline uint32_t store_object(const store *s, uint32_t record, unsigned layer)
{
    return store_chunk(s, record)->objects[layer][record % STORE_CHUNK];
}

/* The step before it, if it was not dropped; otherwise STORE_NONE. Never the record itself or one after it. */
static inline uint32_t store_previous(const store *s, uint32_t record, unsigned layer)
{
    uint32_t before = store_chunk(s, record)->previous[layer][record % STORE_CHUNK];
    return before < record && before >= s->first ? before : STORE_NONE;
}

static inline uint16_t store_color(const store *s, uint32_t object, unsigned layer)
{
    const objects *o = &s->objects[layer];
    const uint16_t *colors = object < o->count ? o->chunks[object / STORE_CHUNK].colors : NULL;
    return colors != NULL ? colors[object % STORE_CHUNK] : NAMES_NONE;
}

static inline uint32_t store_last_step(const store *s, uint32_t object, unsigned layer)
{
    const objects *o = &s->objects[layer];
    const uint32_t *last = object < o->count ? o->chunks[object / STORE_CHUNK].last : NULL;
    return last != NULL ? last[object % STORE_CHUNK] : STORE_NONE;
}

#endif
