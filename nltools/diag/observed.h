/*
 * A log as nldiag looks at it: how long each object took from step to step and where (legs), and what the hosts' and
 * connections' numbers were meanwhile (resources).
 *
 * A leg is the way from one event to the next one on given hosts: DiskReadStart to DiskReadEnd on dpss3, BlockSendEnd
 * on dpss3 to BlockRead on client. A passage is one object's way over a leg. All passages are kept, 24 bytes each. A
 * resource is a numeric field of an event that comes again and again and is no step; it is told apart by host and by
 * what its event's text fields say (a disk's, a connection's name). Of each at most RESOURCE_SAMPLES are kept: then two
 * neighbours become their mean. One thread at a time.
 */
#ifndef NLDIAG_OBSERVED_H
#define NLDIAG_OBSERVED_H

#include "stat/subject.h"

enum {
    HOSTS_MAX = 1 << 14, /* more hosts are not told apart; rules take time by hosts and legs */
    KINDS_MAX = 16,
    KIND_VALUES_MAX = 32,
    KIND_OBJECTS = 1 << 15
};

typedef struct passage {
    int64_t from_ns, took_ns;
    uint32_t object; /* of objects */
    uint32_t leg;    /* of legs */
} passage;

typedef struct leg {
    const drawing_lifeline *lifeline;
    const char *from, *to; /* events; the same for one that is repeated */
    guint from_place, to_place;
    guint from_host, to_host; /* of hosts; 0: not said */
    bool sends; /* it is on one host, and what follows mostly leads to another: who waits until he could send does here
                 */
    passage *passages; /* by time */
    size_t count;
    double total_ns, mean_ns;
    int64_t min_ns, low_ns, median_ns, high_ns, max_ns; /* low and high are the 10th and 90th percentiles */
} leg;

/* An object at an event of its lifeline, on a host. */
typedef struct step {
    int64_t time_ns;
    uint16_t place, host;
} step;

typedef struct object {
    int64_t from_ns, to_ns;
    uint16_t lifeline; /* of the drawing's */
    uint16_t host;     /* the least common one of those that it visits */
    bool whole;        /* it has its lifeline's first and last event */
    uint64_t hash;     /* of its name */
} object;

typedef struct sample {
    int64_t time_ns;
    double value;
} sample;

typedef struct resource {
    const char *event, *field, *instance; /* instance is "" where there is but one */
    guint host;
    GArray *samples; /* sample, by time after observed_finish */
    guint joined;    /* how many values a sample is the mean of */
    double last;     /* of those that wait to be joined */
    guint waiting;
} resource;

/* What the log says of a host's clock: it was measured against another's, or the host itself says how right it is. */
typedef struct host_clock {
    const char *reference; /* the host against whose clock it was measured; NULL: it was not */
    bool is_off;           /* it was, and the two differ by more than the measurements may be wrong by */
    double ahead_ns;       /* of the reference's, in the middle of its time; its least and most */
    double least_ns, most_ns;
    double drift;    /* 1e-4 is 100 ppm fast */
    double error_ns; /* of what was measured; or else what the host says; infinite where nobody knows */
    uint64_t measurements;
    bool is_unkept; /* the host says that nothing keeps its clock right */
} host_clock;

/* What a host's clock is ahead of the reference host's, as causality shows it: positive, it is fast. */
typedef struct clock_error {
    guint host, reference;
    int64_t least_ns, most_ns; /* bounds */
    int64_t taken_ns;          /* what was taken off its times */
    uint64_t violations;       /* received before sent, by these hosts' clocks */
} clock_error;

typedef struct observed observed;

/* Returns a new observed log; options must outlive it. */
observed *observed_new(subject_options *options);
void observed_free(observed *o);

/* Adds a source. Returns false after having reported what could not be read. */
bool observed_read(observed *o, const char *source);

/* After the last record. */
void observed_finish(observed *o);

/* All below: after that; what is returned is the observed's own. */

/* When the first object began and the last one ended; of records where there are no objects. */
int64_t observed_from_ns(const observed *o);
int64_t observed_to_ns(const observed *o);

/*
 * The share of the objects' steps that was kept: 1, or less if the memory was used up. Then the objects are a sample,
 * and how many of them there were at a time is unknown.
 */
double observed_sampled(const observed *o);

/* How many objects were looked at before they ended, and how many passages belong to no leg, because of too many. */
uint64_t observed_early(const observed *o);
uint64_t observed_passages_left_out(const observed *o);

/* How many records there were. */
uint64_t observed_records(const observed *o);

/* Number 0 is "", no host. */
guint observed_host_count(const observed *o);
const char *observed_host(const observed *o, guint number);

const GArray *observed_objects(const observed *o);      /* object */
const GPtrArray *observed_lifelines(const observed *o); /* drawing_lifeline, by objects' numbers of them */
const GPtrArray *observed_legs(const observed *o);      /* leg; by place, then host */
const GPtrArray *observed_resources(const observed *o); /* resource; by host */
const GArray *observed_clock_errors(const observed *o); /* clock_error: by causality, what was measured taken off */
const host_clock *observed_clock(const observed *o, guint host);

/* How much more or less than it seems the way between two hosts may have taken, for what is known of their clocks. */
double observed_clock_doubt_ns(const observed *o, guint from_host, guint to_host);

/* The time of all objects, from first to last step, together. */
double observed_total_ns(const observed *o);

/*
 * Fields of objects' records that have but few values, such as a request's type. What they are is kept of some
 * KIND_OBJECTS objects, whichever. A field's name is NULL where it turned out to have many values; value 0 is none.
 */
guint observed_kind_count(const observed *o);
const char *observed_kind_name(const observed *o, guint field);
const char *observed_kind_value(const observed *o, guint field, guint value);

/* The values of an object's fields, KINDS_MAX of them; NULL where it is none of those. */
const uint8_t *observed_kinds_of(const observed *o, guint object);

/* The steps of an object, by its number, in order of time; *count of them. */
const step *observed_steps(const observed *o, guint object, guint *count);

/* ---- resources ---- */

/* Those of a host, *count of them. */
resource *const *observed_resources_of(const observed *o, guint host, guint *count);

/* The mean of its samples in a range of time; NAN where there is none. */
double resource_mean(const resource *r, int64_t from_ns, int64_t to_ns);

/* Of a counter: how much it rose between its first and last sample in the range. */
double resource_rise(const resource *r, int64_t from_ns, int64_t to_ns);

/* The share (0 to 1) of its samples in the range that are at least low. */
double resource_share_above(const resource *r, double low, int64_t from_ns, int64_t to_ns);

/* The resource of that name; any instance when instance is NULL. NULL when there is none. */
const resource *observed_find(const observed *o, guint host, const char *event, const char *field,
                              const char *instance);

#endif
