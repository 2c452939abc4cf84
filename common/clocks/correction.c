#include "config.h"

#include "base/text.h"
#include "clocks/correction.h"

#include "clocks/fit.h"
#include "clocks/messages.h"
#include "clocks/name_table.h"
#include "base/clock_quality.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORIGINAL "DATE.ORIGINAL"

/* Maximum error of a record's time: times in text have microseconds, and reading a clock takes time. */
#define ROUNDING_NS 2000.0

/*
 * A producer computes the times between two readings of the clock from the processor's counter. These times are
 * imprecise on an overloaded host. Therefore, the module also uses messages that contradict the measurements by less
 * than STAMPS_NS.
 */
#define STAMPS_NS 200e3

/* The module uses times from 1843 to 2096, so that the difference of any two times fits into 64 bits. */
#define TIME_MAX_NS INT64_C(4000000000000000000)

enum { HOSTS_MAX = 1 << 16, NO_HOST = UINT32_MAX };

/*
 * A measurement or message between two hosts. When the clock of one host is known, the relation bounds the clock of the
 * other host.
 */
typedef struct relation {
    uint32_t host, other;
    bool is_measured;
    /* for a measurement, its time by both clocks; for a message from host to other, the times of sending and receipt */
    int64_t time_ns, other_ns;
    double offset_ns, error_ns; /* for a measurement: the other clock minus the host's clock, and the maximum error */
} relation;

typedef struct host {
    fit correction;
    fit_step *steps;
    size_t step_count;
    int64_t first_ns, last_ns; /* times of the host's first and last record */
    uint64_t measurements, messages, contradictions;
    bool solved, is_known;
    size_t first; /* index in by_host of the host's first relation */
    size_t count;
    /* Numbers of relations with solved hosts: measurements, messages to these hosts, and messages from them. */
    uint64_t measured, there, back;
} host;

struct correction {
    correction_options options;
    name_table names, machines;
    uint32_t *machine_hosts; /* the first host of each machine */
    host *hosts;
    size_t capacity;
    relation *relations;
    size_t relation_count, relation_capacity;
    uint32_t *by_host; /* indexes of relations, grouped by host */
    messages *messages;
    uint32_t reference;
};

correction *correction_new(const correction_options *options)
{
    correction *c = nl_memory_check(calloc(1, sizeof *c));
    c->options = *options;
    c->messages = messages_new(&c->options);
    c->reference = NO_HOST;
    return c;
}

static uint32_t host_of(correction *c, nl_string name)
{
    size_t number = name_table_find(&c->names, name);
    if (number != NAME_NONE)
        return (uint32_t)number;
    if (name.size == 0 || c->names.count >= HOSTS_MAX)
        return NO_HOST;
    number = name_table_add(&c->names, name);
    NL_ARRAY_GROW(c->hosts, number, c->capacity);
    c->hosts[number] = (host){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    return (uint32_t)number;
}

/* ---- learning ---- */

static void add_relation(correction *c, const relation *r)
{
    NL_ARRAY_GROW(c->relations, c->relation_count, c->relation_capacity);
    c->relations[c->relation_count++] = *r;
}

/* Sets *value to the nanoseconds in a field that contains microseconds. Returns false if the field is not usable. */
static bool get_ns(const nl_record *record, const char *name, double *value)
{
    nl_field field;
    if (!nl_record_find(record, name, &field) || !nl_field_double(&field, value) || !(fabs(*value) < 1e15))
        return false;
    *value *= 1e3;
    return true;
}

static bool is_usable_time(int64_t time_ns)
{
    return time_ns > -TIME_MAX_NS && time_ns < TIME_MAX_NS;
}

/* Returns the correction, in nanoseconds, that was already applied to the record. */
static double corrected_ns(const nl_record *record)
{
    nl_field field;
    int64_t original_ns;
    if (!nl_record_find(record, ORIGINAL, &field) || field.type != NL_TYPE_STRING ||
        nl_time_parse(field.string.data, field.string.size, NL_FRACTION_DECIMAL, &original_ns) != NL_OK ||
        !is_usable_time(original_ns))
        return 0;
    return (double)(record->time_ns - original_ns);
}

static void learn_offset(correction *c, const nl_record *record, uint32_t number)
{
    nl_field collector;
    double offset_ns, error_ns;
    if (!get_ns(record, "CLOCK.OFFSET", &offset_ns) || !get_ns(record, "CLOCK.ERROR", &error_ns) || error_ns < 0 ||
        !nl_record_find(record, "CLOCK.COLLECTOR", &collector) || collector.type != NL_TYPE_STRING)
        return;
    uint32_t other = host_of(c, collector.string);
    if (other == NO_HOST || other == number)
        return;
    offset_ns -= corrected_ns(record);
    int64_t other_ns = record->time_ns + (int64_t)offset_ns;
    if (!is_usable_time(other_ns))
        return;
    add_relation(c, &(relation){.host = number,
                                .other = other,
                                .is_measured = true,
                                .time_ns = record->time_ns,
                                .other_ns = other_ns,
                                .offset_ns = offset_ns,
                                .error_ns = error_ns + ROUNDING_NS});
    c->hosts[number].measurements++;
}

static void learn_step(correction *c, const nl_record *record, uint32_t number)
{
    host *h = &c->hosts[number];
    double step_ns;
    if (!get_ns(record, "CLOCK.STEP", &step_ns) || corrected_ns(record) != 0)
        return;
    h->steps = nl_memory_check(reallocarray(h->steps, h->step_count + 1, sizeof *h->steps));
    h->steps[h->step_count++] = (fit_step){record->time_ns, step_ns};
}

/*
 * Hosts of one machine share its clock. Therefore, the record of a host with the same machine ID as another host counts
 * as an exact measurement between the two hosts.
 */
static void learn_machine(correction *c, const nl_record *record, uint32_t number)
{
    nl_field machine;
    if (!nl_record_find(record, NL_CLOCK_MACHINE, &machine) || machine.type != NL_TYPE_STRING ||
        machine.string.size == 0 || corrected_ns(record) != 0)
        return;
    size_t known = c->machines.count, at = name_table_find(&c->machines, machine.string);
    if (at == NAME_NONE) {
        if (known == HOSTS_MAX)
            return;
        at = name_table_add(&c->machines, machine.string);
        c->machine_hosts = nl_memory_check(reallocarray(c->machine_hosts, known + 1, sizeof *c->machine_hosts));
        c->machine_hosts[at] = number;
    }
    if (c->machine_hosts[at] == number)
        return;
    add_relation(c, &(relation){.host = number,
                                .other = c->machine_hosts[at],
                                .is_measured = true,
                                .time_ns = record->time_ns,
                                .other_ns = record->time_ns,
                                .error_ns = ROUNDING_NS});
    c->hosts[number].measurements++;
}

void correction_learn(correction *c, const nl_record *record)
{
    if (record->event.size == 0 || !is_usable_time(record->time_ns))
        return;
    uint32_t number = host_of(c, record->host);
    if (number == NO_HOST)
        return;
    host *h = &c->hosts[number];
    h->first_ns = record->time_ns < h->first_ns ? record->time_ns : h->first_ns;
    h->last_ns = record->time_ns > h->last_ns ? record->time_ns : h->last_ns;
    if (nl_string_is(record->event, NL_CLOCK_OFFSET))
        learn_offset(c, record, number);
    else if (nl_string_is(record->event, NL_CLOCK_STEP))
        learn_step(c, record, number);
    else if (nl_string_is(record->event, NL_CLOCK_KERNEL))
        learn_machine(c, record, number);
    else
        messages_put(c->messages, record, number);
}

/* ---- solving ---- */

static void add_messages(correction *c)
{
    message found;
    for (size_t at = 0; messages_next(c->messages, &at, &found);) {
        add_relation(
            c, &(relation){
                   .host = found.from, .other = found.to, .time_ns = found.sent_ns, .other_ns = found.received_ns});
        c->hosts[found.from].messages++;
        c->hosts[found.to].messages++;
    }
}

static void list_relations(correction *c)
{
    for (size_t i = 0; i < c->relation_count; i++) {
        c->hosts[c->relations[i].host].count++;
        c->hosts[c->relations[i].other].count++;
    }
    size_t total = 0;
    for (size_t i = 0; i < c->names.count; i++) {
        c->hosts[i].first = total;
        total += c->hosts[i].count;
        c->hosts[i].count = 0;
    }
    c->by_host = nl_memory_check(reallocarray(NULL, total + 1, sizeof *c->by_host));
    for (size_t i = 0; i < c->relation_count; i++) {
        host *one = &c->hosts[c->relations[i].host], *two = &c->hosts[c->relations[i].other];
        c->by_host[one->first + one->count++] = (uint32_t)i;
        c->by_host[two->first + two->count++] = (uint32_t)i;
    }
}

/*
 * Returns the host that the options name, or otherwise the host with the most measurements against it. If the log has
 * no measurements, returns the host with the most messages.
 */
static uint32_t choose_reference(correction *c)
{
    uint32_t best = NO_HOST;
    if (c->options.reference != NULL)
        return host_of(c, nl_string_of(c->options.reference));
    uint64_t *measured = nl_memory_check(calloc(c->names.count + 1, sizeof *measured));
    for (size_t i = 0; i < c->relation_count; i++)
        measured[c->relations[i].other] += c->relations[i].is_measured;
    for (uint32_t i = 0; i < c->names.count; i++)
        if (best == NO_HOST || measured[i] > measured[best] ||
            (measured[i] == measured[best] && c->hosts[i].messages > c->hosts[best].messages))
            best = i;
    free(measured);
    return best;
}

/*
 * Converts a relation to a bound of a host's correction, if the other host is solved. Computes with small differences,
 * because times as doubles are precise only to 256 ns.
 */
static fit_bound bound_of(const correction *c, const relation *r, uint32_t number)
{
    bool is_own = r->host == number;
    const host *other = &c->hosts[is_own ? r->other : r->host];
    int64_t own_ns = is_own ? r->time_ns : r->other_ns, its_ns = is_own ? r->other_ns : r->time_ns;
    bool is_reference = other->correction.count == 0;
    double its_error = is_reference ? 0 : fit_error_at(&other->correction, its_ns);
    double difference = (double)(its_ns - own_ns) + fit_at(&other->correction, its_ns);
    fit_bound b = {own_ns, -INFINITY, INFINITY};
    if (r->is_measured) {
        b.low_ns = difference - r->error_ns - its_error;
        b.high_ns = difference + r->error_ns + its_error;
    } else if (is_own) { /* this host sent the message before the other host received it */
        b.high_ns = difference + its_error + ROUNDING_NS;
    } else {
        b.low_ns = difference - its_error - ROUNDING_NS;
    }
    return b;
}

/* Removes messages that the measurements make impossible. Returns the number of remaining bounds. */
static size_t drop_contradictions(host *h, const fit *measured, fit_bound *bounds, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_message = isinf(bounds[i].low_ns) || isinf(bounds[i].high_ns);
        double at = fit_at(measured, bounds[i].time_ns), error = fit_error_at(measured, bounds[i].time_ns) + STAMPS_NS;
        if (is_message && (bounds[i].high_ns < at - error || bounds[i].low_ns > at + error))
            h->contradictions++;
        else
            bounds[kept++] = bounds[i];
    }
    return kept;
}

/*
 * Collects the bounds of a host from its relations with solved hosts, either from measurements only or from all
 * relations. Returns their number.
 */
static size_t collect_bounds(const correction *c, uint32_t number, bool all, fit_bound *bounds)
{
    const host *h = &c->hosts[number];
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++) {
        const relation *r = &c->relations[c->by_host[h->first + i]];
        const host *other = &c->hosts[r->host == number ? r->other : r->host];
        if (other->solved && (all || r->is_measured))
            bounds[count++] = bound_of(c, r, number);
    }
    return count;
}

static void solve_host(correction *c, uint32_t number)
{
    host *h = &c->hosts[number];
    fit_bound *bounds = nl_memory_check(reallocarray(NULL, h->count + 1, sizeof *bounds));
    size_t count = collect_bounds(c, number, false, bounds);
    fit measured = fit_find(bounds, count, h->steps, h->step_count);
    bool has_measured = count > 0;
    count = collect_bounds(c, number, true, bounds);
    if (has_measured)
        count = drop_contradictions(h, &measured, bounds, count);
    h->correction = fit_find(bounds, count, h->steps, h->step_count);
    h->solved = h->is_known = count > 0;
    fit_free(&measured);
    free(bounds);
}

/*
 * Returns the priority of a host: the module determines the clock of the host with the highest priority next. The
 * priority depends on the number of measurements against hosts whose clocks are known, and then on the number of
 * messages in both directions.
 */
static uint64_t tie_of(const host *h)
{
    const uint64_t limit = (UINT64_C(1) << 20) - 1;
    uint64_t measured = h->measured, both = h->there < h->back ? h->there : h->back, any = h->there + h->back;
    measured = measured < limit ? measured : limit;
    both = both < limit ? both : limit;
    any = any < limit ? any : limit;
    return measured << 40 | both << 20 | any;
}

/* Updates the counts of other hosts' relations with solved hosts after a host was solved. */
static void tie_others(correction *c, uint32_t number)
{
    const host *h = &c->hosts[number];
    for (size_t i = 0; i < h->count; i++) {
        const relation *r = &c->relations[c->by_host[h->first + i]];
        host *other = &c->hosts[r->host == number ? r->other : r->host];
        other->measured += r->is_measured;
        other->there += !r->is_measured && r->other == number;
        other->back += !r->is_measured && r->host == number;
    }
}

void correction_solve(correction *c)
{
    add_messages(c);
    c->reference = choose_reference(c);
    list_relations(c);
    if (c->reference == NO_HOST)
        return;
    c->hosts[c->reference].solved = c->hosts[c->reference].is_known = true;
    tie_others(c, c->reference);
    for (;;) {
        uint32_t best = NO_HOST;
        uint64_t best_tie = 0;
        for (uint32_t i = 0; i < c->names.count; i++) {
            uint64_t tie = c->hosts[i].solved ? 0 : tie_of(&c->hosts[i]);
            if (tie > best_tie) {
                best = i;
                best_tie = tie;
            }
        }
        if (best == NO_HOST)
            return;
        solve_host(c, best);
        tie_others(c, best);
    }
}

/* ---- applying ---- */

int64_t correction_time(const correction *c, nl_string host_name, int64_t time_ns)
{
    size_t number = name_table_find(&c->names, host_name);
    const host *h = number != NAME_NONE && is_usable_time(time_ns) ? &c->hosts[number] : NULL;
    if (h == NULL || h->correction.count == 0)
        return time_ns;
    double wanted_ns = fit_at(&h->correction, time_ns);
    int64_t add_ns = fabs(wanted_ns) < (double)TIME_MAX_NS ? (int64_t)llround(wanted_ns) : 0, corrected_ns;
    return __builtin_add_overflow(time_ns, add_ns, &corrected_ns) ? time_ns : corrected_ns;
}

bool correction_apply(const correction *c, const nl_record *record, nl_record *out)
{
    return correction_set_time(record, correction_time(c, record->host, record->time_ns), out);
}

bool correction_set_time(const nl_record *record, int64_t time_ns, nl_record *out)
{
    nl_field known;
    if (time_ns == record->time_ns)
        return false;
    nl_record_copy(out, record);
    nl_record_set_time(out, time_ns);
    if (!nl_record_find(record, ORIGINAL, &known)) {
        char text[NL_TIME_TEXT_SIZE];
        nl_record_add_string(out, ORIGINAL, text, nl_time_format_ulm(record->time_ns, text));
    }
    return true;
}

/* ---- results ---- */

size_t correction_host_count(const correction *c)
{
    return c->names.count;
}

const char *correction_reference(const correction *c)
{
    return c->reference != NO_HOST ? c->names.texts[c->reference] : NULL;
}

correction_host correction_get_host(const correction *c, size_t i)
{
    const host *h = &c->hosts[i];
    const fit *f = &h->correction;
    correction_host result = {.name = c->names.texts[i],
                              .is_reference = i == c->reference,
                              .is_known = h->is_known,
                              .measurements = h->measurements,
                              .messages = h->messages,
                              .contradictions = h->contradictions,
                              .pieces = (unsigned)f->count,
                              .error_ns = h->is_known ? 0 : INFINITY};
    if (f->count == 0)
        return result;
    int64_t from_ns = h->first_ns, to_ns = h->last_ns;
    if (from_ns > to_ns)
        from_ns = to_ns = f->pieces[0].from_ns;
    result.offset_ns = fit_at(f, from_ns + (to_ns - from_ns) / 2);
    result.min_ns = fmin(fit_at(f, from_ns), fit_at(f, to_ns));
    result.max_ns = fmax(fit_at(f, from_ns), fit_at(f, to_ns));
    double length = 0;
    for (size_t k = 0; k < f->count; k++) {
        const fit_piece *p = &f->pieces[k];
        double part = (double)(p->to_ns - p->from_ns) + 1;
        result.drift -= p->slope * part;
        length += part;
        result.steps += p->set;
        result.error_ns = fmax(result.error_ns, fmax(p->low_error_ns, p->high_error_ns));
        double at_end = p->at_ns + p->slope * (part - 1);
        result.min_ns = fmin(result.min_ns, fmin(p->at_ns, at_end));
        result.max_ns = fmax(result.max_ns, fmax(p->at_ns, at_end));
    }
    result.drift /= length;
    return result;
}

void correction_free(correction *c)
{
    for (size_t i = 0; i < c->names.count; i++) {
        fit_free(&c->hosts[i].correction);
        free(c->hosts[i].steps);
    }
    name_table_free(&c->names);
    name_table_free(&c->machines);
    free(c->machine_hosts);
    messages_free(c->messages);
    free(c->hosts);
    free(c->relations);
    free(c->by_host);
    free(c);
}
