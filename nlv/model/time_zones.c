#include "config.h"

#include "model/time_zones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS_MAX = 16, NO_KIND = UINT8_MAX };

/* The starts of spans that have the same event, host and time zone. */
typedef struct zone_kind {
    char *event, *host;
    int64_t zone_ns;
    bool is_single; /* see time_zones_add_single */
} zone_kind;

typedef struct shifted_record {
    uint64_t place;
    int64_t shift_ns;
    uint8_t kind; /* index of the kind of a start; NO_KIND: the record is an end, or there are too many kinds */
} shifted_record;

struct time_zones {
    gatomicrefcount references;
    GArray *records; /* shifted_record, by place after time_zones_settle */
    size_t records_max;
    bool is_cut; /* the module has ignored a span, because there were too many records */
    zone_kind kinds[KINDS_MAX];
    unsigned kind_count;
};

time_zones *time_zones_new(size_t records_max)
{
    time_zones *z = g_new0(time_zones, 1);
    z->records = g_array_new(FALSE, FALSE, sizeof(shifted_record));
    z->records_max = records_max;
    g_atomic_ref_count_init(&z->references);
    return z;
}

const time_zones *time_zones_ref(const time_zones *z)
{
    g_atomic_ref_count_inc(&((time_zones *)z)->references);
    return z;
}

void time_zones_unref(const time_zones *shared)
{
    time_zones *z = (time_zones *)shared;
    if (z == NULL || !g_atomic_ref_count_dec(&z->references))
        return;
    for (unsigned i = 0; i < z->kind_count; i++) {
        g_free(z->kinds[i].event);
        g_free(z->kinds[i].host);
    }
    g_array_free(z->records, TRUE);
    g_free(z);
}

static uint8_t find_kind(time_zones *z, const time_zones_span *span, bool is_single)
{
    for (unsigned i = 0; i < z->kind_count; i++)
        if (z->kinds[i].zone_ns == span->zone_ns && z->kinds[i].is_single == is_single &&
            strcmp(z->kinds[i].event, span->event) == 0 && strcmp(z->kinds[i].host, span->host) == 0)
            return (uint8_t)i;
    if (z->kind_count == KINDS_MAX)
        return NO_KIND;
    z->kinds[z->kind_count] = (zone_kind){g_strdup(span->event), g_strdup(span->host), span->zone_ns, is_single};
    return (uint8_t)z->kind_count++;
}

void time_zones_add(time_zones *z, const time_zones_span *span)
{
    if (z->records->len + 2 > z->records_max) {
        z->is_cut = true;
        return;
    }
    const shifted_record begin = {span->begin_place, span->zone_ns, find_kind(z, span, false)},
                         end = {span->end_place, span->end_shift_ns, NO_KIND};
    g_array_append_val(z->records, begin);
    g_array_append_val(z->records, end);
}

void time_zones_add_single(time_zones *z, uint64_t place, int64_t zone_ns, const char *event, const char *host)
{
    const time_zones_span span = {.zone_ns = zone_ns, .event = event, .host = host};
    const uint8_t kind = find_kind(z, &span, true);
    const shifted_record record = {place, zone_ns, kind};
    if (kind != NO_KIND && z->records->len < z->records_max)
        g_array_append_val(z->records, record);
}

static int by_place(const void *a, const void *b)
{
    const shifted_record *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

void time_zones_settle(time_zones *z)
{
    guint count = 0;
    g_array_sort(z->records, by_place); /* stable */
    for (guint i = 0; i < z->records->len; i++) {
        const shifted_record *own = &g_array_index(z->records, shifted_record, i);
        if (count == 0 || g_array_index(z->records, shifted_record, count - 1).place != own->place)
            g_array_index(z->records, shifted_record, count++) = *own;
    }
    g_array_set_size(z->records, count); /* a record of several lifelines has one shift */
}

static const shifted_record *find_record(const time_zones *z, uint64_t place)
{
    const shifted_record wanted = {.place = place};
    return z->records->len > 0 ? bsearch(&wanted, z->records->data, z->records->len, sizeof wanted, by_place) : NULL;
}

int64_t time_zones_time(const time_zones *z, uint64_t place, int64_t time_ns)
{
    const shifted_record *record = z != NULL ? find_record(z, place) : NULL;
    int64_t corrected_ns;
    return record != NULL && !__builtin_add_overflow(time_ns, record->shift_ns, &corrected_ns) ? corrected_ns : time_ns;
}

int64_t time_zones_record_time(const time_zones *z, const correction *clocks, const nl_record *record, uint64_t place)
{
    const int64_t time_ns = clocks != NULL ? correction_time(clocks, record->host, record->time_ns) : record->time_ns;
    return time_zones_time(z, place, time_ns);
}

int64_t time_zones_shift_single(const time_zones *z, uint64_t place)
{
    const shifted_record *record = find_record(z, place);
    return record != NULL && record->kind != NO_KIND && z->kinds[record->kind].is_single ? record->shift_ns : 0;
}

int64_t time_zones_zone(const time_zones *z)
{
    return z->kind_count > 0 ? z->kinds[0].zone_ns : 0;
}

bool time_zones_has_more(const time_zones *z, const time_zones *former)
{
    bool has_more = former == NULL && z->records->len > 0;
    for (guint i = 0; i < z->records->len && !has_more; i++)
        has_more = find_record(former, g_array_index(z->records, shifted_record, i).place) == NULL;
    return has_more;
}

void time_zones_describe(const time_zones *z, GPtrArray *sentences)
{
    size_t counts[KINDS_MAX] = {0};
    for (guint i = 0; i < z->records->len; i++) {
        const uint8_t kind = g_array_index(z->records, shifted_record, i).kind;
        if (kind != NO_KIND)
            counts[kind]++;
    }
    for (unsigned i = 0; i < z->kind_count; i++) {
        const zone_kind *k = &z->kinds[i];
        static const char *const reasons[] = {
            "the durations of these spans show another time zone. nlv corrected the times, and computed the ends of "
            "these spans from their durations.",
            "these events are in the time zone of such spans of their requests. nlv corrected the times."};
        if (counts[i] > 0)
            g_ptr_array_add(sentences,
                            g_strdup_printf("%zu %s event%s%s%s %s logged %.4g h too %s: %s", counts[i], k->event,
                                            counts[i] == 1 ? "" : "s", *k->host != '\0' ? " on " : "", k->host,
                                            counts[i] == 1 ? "was" : "were", fabs((double)k->zone_ns) / 3600e9,
                                            k->zone_ns > 0 ? "early" : "late", reasons[k->is_single]));
    }
    if (z->is_cut)
        g_ptr_array_add(
            sentences,
            g_strdup_printf("nlv corrects at most %zu times; further times in other time zones stay as logged.",
                            z->records_max));
}
