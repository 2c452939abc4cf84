/*
 * A log as the rules of nldiag search it.
 *
 * - An object is a request.
 * - A leg is the way from one event to the next, on given hosts: DiskReadStart to DiskReadEnd on dpss3, BlockSendEnd on
 *   dpss3 to BlockRead on client. A passage is the way of one object over a leg.
 * - A resource is a numeric field of a repeated event that is no step, such as those of sensors. Resources differ by
 *   host, event, field, and the text fields of the event, such as the name of a disk (its instance).
 *
 * Memory is bounded: if the objects need more than --memory, a sample of them is kept, chosen by the hash of their
 * names; neighbouring samples of a resource are joined. One thread at a time.
 */
#ifndef NLDIAG_OBSERVED_H
#define NLDIAG_OBSERVED_H

#include "stat/subject.h"

enum {
    HOSTS_MAX = 1 << 14, /* hosts beyond this count as host 0 */
    KINDS_MAX = 16,
    KIND_VALUES_MAX = 32,
    KIND_OBJECTS = 1 << 15
};

typedef struct passage {
    int64_t from_ns, took_ns;
    uint32_t object; /* index */
    uint32_t leg;    /* index */
} passage;

typedef struct leg {
    const drawing_lifeline *lifeline;
    const char *from, *to; /* events; the same for a repeated event */
    guint from_place, to_place;
    guint from_host, to_host; /* numbers; 0: unknown */
    bool sends;        /* on one host, and mostly followed by a leg to another host: includes the wait until sending */
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
    uint16_t lifeline; /* number */
    uint16_t host;     /* the host that the fewest objects visit */
    bool whole;        /* has the first and the last event of its lifeline */
    uint32_t step_count;
    size_t first_step;
    uint64_t hash; /* of its name */
} object;

typedef struct sample {
    int64_t time_ns;
    double value;
} sample;

typedef struct resource {
    const char *event, *field, *instance; /* instance "": none */
    guint host;
    GArray *samples; /* sample, by time after observed_finish */
    guint joined;    /* number of values in a sample, which is their mean */
    double last;     /* sum of the values that wait for a sample */
    guint waiting;
} resource;

/* What the log says about a host's clock: measurements against another clock, or what the host itself reports. */
typedef struct host_clock {
    const char *reference; /* host against whose clock it was measured; NULL: none */
    bool is_off;           /* measured, and the difference exceeds the error */
    double ahead_ns;       /* of the reference, in the middle of the time; and its minimum and maximum */
    double least_ns, most_ns;
    double drift;    /* 1e-4 is 100 ppm fast */
    double error_ns; /* of the measurements, or as the host reports; infinite: unknown */
    uint64_t measurements;
    bool is_unkept; /* the host reports that its clock is not synchronized */
} host_clock;

/* How far a host's clock is ahead of the reference host's, according to messages. */
typedef struct clock_error {
    guint host, reference;
    int64_t least_ns, most_ns; /* bounds */
    int64_t taken_ns;          /* subtracted from its times */
    uint64_t violations;       /* messages received before they were sent */
} clock_error;

typedef struct observed observed;

/* Returns a new observed log; options must outlive it. */
observed *observed_new(subject_options *options);
void observed_free(observed *o);

/* Adds a source. Returns false after having reported what could not be read. */
bool observed_read(observed *o, const char *source);

/* Completes the results. Call it after the last record and before the functions below, whose results belong to o. */
void observed_finish(observed *o);

/* The begin of the first object and the end of the last one; without objects, those of the records. */
int64_t observed_from_ns(const observed *o);
int64_t observed_to_ns(const observed *o);

/*
 * The share of the objects' steps that was kept: 1, or less if the memory was used up. Then the objects are a sample,
 * and how many of them there were at a time is unknown.
 */
double observed_sampled(const observed *o);

/* The number of objects that were examined before they ended, and of passages without a leg, because of limits. */
uint64_t observed_early(const observed *o);
uint64_t observed_passages_left_out(const observed *o);

/* The number of records. */
uint64_t observed_records(const observed *o);

/* Host 0 is "", an unknown host. */
guint observed_host_count(const observed *o);
const char *observed_host(const observed *o, guint number);

const GArray *observed_objects(const observed *o);      /* object */
const GPtrArray *observed_lifelines(const observed *o); /* drawing_lifeline, by number */
const GPtrArray *observed_legs(const observed *o);      /* leg; by place, then host */
const GPtrArray *observed_resources(const observed *o); /* resource; by host */
const GArray *observed_clock_errors(const observed *o); /* clock_error, after measured errors were corrected */
const host_clock *observed_clock(const observed *o, guint host);

/* The maximum error of the time between events of two hosts, because of their clocks. */
double observed_clock_doubt_ns(const observed *o, guint from_host, guint to_host);

/* The sum of the times of all objects, from first to last step. */
double observed_total_ns(const observed *o);

/*
 * Fields of the objects' records with few values, such as a request's type, and their values for up to KIND_OBJECTS
 * objects. The name of a field is NULL if it has many values. Value 0 is none.
 */
guint observed_kind_count(const observed *o);
const char *observed_kind_name(const observed *o, guint field);
const char *observed_kind_value(const observed *o, guint field, guint value);

/* The values of an object's fields, KINDS_MAX of them; NULL: unknown. */
const uint8_t *observed_kinds_of(const observed *o, guint object);

/* The steps of an object in the order of time; *count of them. */
const step *observed_steps(const observed *o, guint object, guint *count);

/* ---- resources ---- */

/* The resources of a host, *count of them. */
resource *const *observed_resources_of(const observed *o, guint host, guint *count);

/* The mean of the samples in a range of time; NAN without samples. */
double resource_mean(const resource *r, int64_t from_ns, int64_t to_ns);

/* The increase of a counter between its first and last sample in a range of time. */
double resource_rise(const resource *r, int64_t from_ns, int64_t to_ns);

/* The share (0 to 1) of the samples in a range of time that are at least low. */
double resource_share_above(const resource *r, double low, int64_t from_ns, int64_t to_ns);

/* Finds a resource; instance NULL: any. Returns NULL if none exists. */
const resource *observed_find(const observed *o, guint host, const char *event, const char *field,
                              const char *instance);

#endif
