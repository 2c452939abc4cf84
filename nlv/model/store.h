/*
 * Stores the records of some logs in order of time, with about 30 bytes per record. Does not use GTK.
 *
 * A record has a time, the numbers of the names of its event, host and program, and the place of its text in the log.
 * For each layer, a record also has the object to which it belongs, and the previous step of this object. The links to
 * previous steps lead from the last step of an object to its first step. edges.h determines which steps the lines
 * connect. A record's number is its position in the order of time. The store inserts late records at their positions.
 *
 * Lists (list.h) contain the data to draw. A list contains the ends of edges (for each pair of rows), the first steps
 * of objects (for each row), or the values of a loadline (for each host). Other lists contain the points. If requested,
 * events outside the drawing become points.
 *
 * Arrays consist of chunks of 65,536 records. Chunks never move when a log grows. The store can drop old chunks, and
 * map the chunks of a saved index (index.h). The store has no lock; the model locks it.
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
    STORE_HOSTS_MAX = 4096,
    STORE_CURVES_MAX = 8 /* a loadline of more hosts has a strip for each host instead of a curve */
};

typedef struct chunk {
    int64_t *times;
    uint64_t *places;
    uint16_t *events, *hosts, *progs;
    uint32_t *objects[SPEC_LAYERS], *previous[SPEC_LAYERS]; /* STORE_NONE: no object, or no previous step */
    bool borrowed;                                          /* the arrays are in a mapped index */
} chunk;

/* The objects of a layer, in chunks. */
typedef struct objects_chunk {
    uint64_t *keys;
    uint32_t *last;   /* the last step, or STORE_NONE before the first step */
    uint16_t *colors; /* the number of a host, program or field value, depending on the lifeline */
    bool borrowed;
} objects_chunk;

typedef struct objects {
    objects_chunk *chunks;
    uint32_t count, capacity;
    uint32_t *slots; /* hash table (open addressing); an element is 1 plus the number of an object; NULL until the first
                        lookup */
    size_t slot_count;
} objects;

typedef struct lifeline_lists {
    unsigned rows;
    list **segments;   /* indexed by row * rows + later row: the records at which the edges between the two rows end;
                          NULL: no list */
    list **violations; /* like segments, for impossible edges, from effect to cause; NULL: no list */
    list **starts;     /* indexed by row: the first steps of objects */
} lifeline_lists;

typedef struct host_list {
    uint16_t host; /* number of the host or, for durations, of the event */
    list *list;
} host_list;

typedef struct loadline_lists {
    host_list *hosts; /* in order of arrival */
    size_t count;
} loadline_lists;

typedef struct store {
    spec *spec;
    batch_names names;
    chunk *chunks;
    int64_t *marks;    /* the time of every STORE_MARK-th record */
    uint32_t count;    /* number of records, including dropped records */
    uint32_t first;    /* the first record that the store has not dropped */
    uint32_t capacity; /* capacity of chunks */
    objects objects[SPEC_LAYERS];
    lifeline_lists *lifelines;
    loadline_lists *loadlines;
    list *points;          /* first the points of the spec, then the events that the store has found */
    uint16_t *found;       /* the events that the store has found */
    size_t point_count;    /* number of both kinds of points */
    bool looks_out;        /* show events outside the drawing as points */
    uint32_t *visits;      /* indexed by host: the number of objects with a step on the host */
    uint8_t *point_hosts;  /* indexed by host: whether the host has a point */
    batch late;            /* late records that the store will insert later */
    int64_t earliest_late; /* time of the earliest late record */
    void *mapped;          /* the index that contains borrowed chunks and lists; NULL: no index */
    size_t mapped_size;
    int mapped_fd;      /* file descriptor of the index */
    uint64_t unordered; /* number of records that arrived after later records */
    uint64_t rejected;  /* number of records that were older than all remaining records, or would have got the number
                           STORE_NONE */
    uint32_t colored;   /* the number of records at the latest coloring of the objects */
    bool has_machine, has_machines; /* has_machine: the records name a machine (SPEC_MACHINE); has_machines: the records
                                       name several machines */
    float machine;
} store;

/* Returns an empty store. Takes ownership of the spec and the names. */
store *store_new(spec *s, batch_names names, bool looks_out);
void store_free(store *s);

/* Adds the rows of a batch, in any order, and changes the batch. */
void store_append(store *s, batch *b);

/* Inserts all late records at their positions in the order of time. */
void store_settle(store *s);

/* Colors the objects again if the number of records has grown by a quarter since the latest coloring, and updates the
 * lists. Drawing may continue while the function runs, with some old and some new colors. */
void store_color_objects(store *s);

/* Returns a store's memory in bytes, including the memory for inserting late records, but not the mapped parts. */
size_t store_memory(const store *s);

/* Drops the oldest records until the store needs at most `limit` bytes. Returns false if the store still needs more
 * memory. */
bool store_shrink(store *s, size_t limit);

/* Returns the number of records that the store has dropped or rejected. */
static inline uint64_t store_missing(const store *s)
{
    return s->first + s->rejected;
}

/* Returns the list of a loadline's values on a host, and adds the list if necessary. Returns NULL if there are already
 * STORE_HOSTS_MAX lists. */
list *store_loadline_list(store *s, uint16_t loadline, uint16_t host);

/* Returns whether a loadline has a strip for each host (loadlines_layer.c). */
static inline bool store_has_strips(const store *s, size_t loadline)
{
    return s->loadlines[loadline].count > STORE_CURVES_MAX;
}

/* Returns the number that selects a loadline's list: the number of the host or, for durations, of the event. */
static inline uint16_t store_loadline_owner(const store *s, size_t loadline, uint16_t event, uint16_t host)
{
    return loadline == s->spec->drawn_loadlines + SPEC_DURATION ? event : host;
}

/*
 * Returns the durations of an event's records in nanoseconds, or NULL if no record has a duration. If the duration is
 * negative, the span begins with the record; otherwise, it ends with the record.
 */
const list *store_durations(const store *s, uint16_t event);

/* Returns the duration of a record in nanoseconds as in the list of store_durations, or 0 if the record has no
 * duration.
 */
double store_duration(const store *s, uint32_t record);

/* Returns the first record at or after a time, or count if all records are earlier. */
uint32_t store_find_time(const store *s, int64_t time_ns);

/* Returns a record by its time and place, or STORE_NONE if the store does not have the record. */
uint32_t store_find_place(const store *s, int64_t time_ns, uint64_t place);

/* Like store_find_time, but rounds the result up to a multiple of STORE_MARK. Does not access chunks. */
uint32_t store_find_time_near(const store *s, int64_t time_ns);

/*
 * The error of a host's clock at a record, according to the log. The error is unknown if all hosts share one machine's
 * clock.
 */
typedef struct store_clock {
    bool is_known;
    bool is_measured;       /* true: the collector has measured the error; false: the host has reported it */
    double low_ns, high_ns; /* the correction of the host's times is between these limits */
} store_clock;
store_clock store_clock_at(const store *s, uint16_t host, uint32_t record);

/* Returns the measurement that proves the largest error of a host's clock, or an unknown clock if no measurement proves
 * an error. */
store_clock store_clock_furthest(const store *s, uint16_t host);

/* Like store_clock_at, but uses only values that the host itself has logged. */
store_clock store_clock_said(const store *s, uint16_t host, uint32_t record);

/* Returns the sum of the maximum errors of two hosts' clocks at a record in nanoseconds, without known offsets. Returns
 * 0 if the hosts share a clock, and CLOCK_BOUND_UNKNOWN if neither clock is known. */
double store_clock_bound_ns(const store *s, uint16_t host, uint16_t other, uint32_t record);

/* Finds the machine whose clock each host uses. Call the function for a store that comes from an index. */
void store_note_machines(store *s);

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

/* Returns the object of a record, or STORE_NONE if the record belongs to no object. */
static inline uint32_t store_object(const store *s, uint32_t record, unsigned layer)
{
    return store_chunk(s, record)->objects[layer][record % STORE_CHUNK];
}

/* Returns the step before a record. Returns STORE_NONE if the record is the first step of its object, or if the store
 * has dropped the previous step. The result is less than `record`. */
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
    return last != NULL && last[object % STORE_CHUNK] >= s->first ? last[object % STORE_CHUNK] : STORE_NONE;
}

#endif
