#include "config.h"

#include "model/batch.h"

#include "base/clock_quality.h"
#include "base/hash_bytes.h"
#include "requests/request_reader.h"

#include <math.h>
#include <string.h>

enum { CAPACITY_MIN = 1024 };

void batch_clear(batch *b, unsigned layers)
{
    if (b->layers != layers) {
        batch_free(b);
        b->layers = layers;
    }
    b->count = b->value_count = 0;
}

void batch_free(batch *b)
{
    g_free(b->rows);
    g_free(b->steps);
    g_free(b->values);
    *b = (batch){0};
}

batch_row *batch_add(batch *b)
{
    if (b->count == b->capacity) {
        b->capacity = MAX(2 * b->capacity, CAPACITY_MIN);
        b->rows = g_renew(batch_row, b->rows, b->capacity);
        b->steps = g_renew(batch_step, b->steps, b->capacity * b->layers);
    }
    memset(&b->steps[b->count * b->layers], 0, b->layers * sizeof *b->steps);
    batch_row *row = &b->rows[b->count++];
    row->value_count = 0;
    row->first_value = (uint32_t)b->value_count;
    return row;
}

void batch_add_value(batch *b, batch_row *row, uint16_t loadline, float value)
{
    if (b->value_count == b->value_capacity) {
        b->value_capacity = MAX(2 * b->value_capacity, CAPACITY_MIN);
        b->values = g_renew(batch_value, b->values, b->value_capacity);
    }
    b->values[b->value_count++] = (batch_value){loadline, value};
    row->value_count++;
}

/* Like nl_record_find, but searches the standard fields last, because a drawing rarely names them. */
static bool batch_find(const nl_record *record, const spec_field *wanted, nl_field *field)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_string *name = &record->fields[i].name;
        if (name->size == wanted->size && memcmp(name->data, wanted->name, wanted->size) == 0) {
            *field = record->fields[i];
            return true;
        }
    }
    return nl_record_find(record, wanted->name, field);
}

static bool find_id(const nl_record *record, const spec_field choices[SPEC_CHOICES], nl_field *field)
{
    for (unsigned i = 0; i < SPEC_CHOICES && choices[i].name != NULL; i++)
        if (batch_find(record, &choices[i], field))
            return true;
    return false;
}

/* Returns the key of the object to which a record belongs, or 0 if the record lacks an ID field. */
static uint64_t key_of(const extractor *x, uint16_t lifeline, const nl_record *record)
{
    const spec_lifeline *l = &x->spec->lifelines[lifeline];
    uint64_t key = x->spec->seed + lifeline * UINT64_C(0x9e3779b97f4a7c15);
    if (l->by_log && x->log != NULL)
        key = hash_bytes(key, x->log, strlen(x->log));
    for (unsigned i = 0; i < l->id_count; i++) {
        nl_field field;
        char scratch[NL_FIELD_TEXT_SIZE];
        if (!find_id(record, l->ids[i], &field))
            return 0;
        nl_string text = nl_field_text(&field, scratch);
        key = hash_bytes(key, text.data, text.size);
    }
    return key != 0 ? key : 1;
}

static uint16_t color_of(extractor *x, const spec_lifeline *l, const nl_record *record)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (l->by_log && x->log != NULL)
        return names_put_cached(x->names.colors, &x->colors, (nl_string){x->log, strlen(x->log)});
    if (l->color != COLOR_BY_FIELD || !batch_find(record, &l->color_field, &field))
        return NAMES_NONE;
    return names_put_cached(x->names.colors, &x->colors, nl_field_text(&field, scratch));
}

static void extract_values(const spec *s, const spec_event *plan, const nl_record *record, batch *b, batch_row *row)
{
    for (unsigned i = 0; i < plan->loadline_count; i++) {
        nl_field field;
        double value;
        if (batch_find(record, &s->loadlines[plan->loadlines[i]], &field) && nl_field_double(&field, &value) &&
            isfinite((float)value))
            batch_add_value(b, row, plan->loadlines[i], (float)value);
    }
}

static bool is_named(nl_string text, const char *name)
{
    return text.size == strlen(name) && memcmp(text.data, name, text.size) == 0;
}

static bool get_number(const nl_record *record, const char *name, double *value)
{
    nl_field field;
    return nl_record_find(record, name, &field) && nl_field_double(&field, value) && isfinite((float)*value);
}

/*
 * Returns the nanoseconds by which the time of a record was corrected, by nlv or before the record was logged
 * (DATE.ORIGINAL).
 */
static double added_ns(const nl_record *record, int64_t time_ns)
{
    nl_field field;
    int64_t original_ns = record->time_ns;
    if (nl_record_find(record, "DATE.ORIGINAL", &field) && field.type == NL_TYPE_STRING &&
        nl_time_parse(field.string.data, field.string.size, NL_FRACTION_DECIMAL, &original_ns) != NL_OK)
        original_ns = record->time_ns;
    return (double)time_ns - (double)original_ns;
}

/*
 * Returns whether the record reports that its clock is not synchronized. Also accepts strings, because text formats
 * store boolean values as strings.
 */
static bool is_unsynchronized(const nl_record *record)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    return nl_record_find(record, "CLOCK.SYNCHRONIZED", &field) && is_named(nl_field_text(&field, scratch), "false");
}

static void extract_machine(const spec *s, const nl_record *record, batch *b, batch_row *row)
{
    enum { EXACT_IN_FLOAT = 0xffffff };
    nl_field field;
    if (is_named(record->event, NL_CLOCK_KERNEL) && nl_record_find(record, NL_CLOCK_MACHINE, &field) &&
        field.type == NL_TYPE_STRING)
        batch_add_value(b, row, (uint16_t)(s->drawn_loadlines + SPEC_MACHINE),
                        (float)(hash_bytes(0, field.string.data, field.string.size) & EXACT_IN_FLOAT));
}

static void extract_clock(const spec *s, const nl_record *record, batch *b, batch_row *row)
{
    extract_machine(s, record, b, row);
    if (is_unsynchronized(record))
        return; /* without the remaining fields, the error of the clock is unknown */
    for (unsigned i = 0; i < SPEC_CLOCKS; i++) {
        const spec_clock *c = &spec_clocks[i];
        double offset = 0, error;
        uint16_t loadline = (uint16_t)(s->drawn_loadlines + 2 * i);
        if (!is_named(record->event, c->event) || !get_number(record, c->error_field, &error) || error < 0 ||
            (c->offset_field != NULL && !get_number(record, c->offset_field, &offset)))
            continue;
        batch_add_value(b, row, loadline, (float)(offset * c->unit_ns - added_ns(record, row->time_ns)));
        batch_add_value(b, row, (uint16_t)(loadline + 1), (float)(error * c->unit_ns));
    }
}

static void extract_duration(extractor *x, const nl_record *record, batch *b, batch_row *row)
{
    char buffer[REQUEST_UNNAMED_SIZE];
    int64_t duration_ns;
    bool begins, has_nanoseconds = x->has_nanoseconds != NULL && *x->has_nanoseconds;
    const bool had_nanoseconds = has_nanoseconds;
    if (!request_duration(record, x->fraction, &has_nanoseconds, &duration_ns, &begins))
        return;
    if (has_nanoseconds && !had_nanoseconds && x->has_nanoseconds != NULL)
        *x->has_nanoseconds = true;
    if (record->event.size == 0)
        row->event = names_put_cached(x->names.events, &x->events,
                                      request_unnamed(x->spec->splits_unnamed ? record->prog : (nl_string){0}, buffer));
    if (duration_ns > 0)
        batch_add_value(b, row, (uint16_t)(x->spec->drawn_loadlines + SPEC_DURATION),
                        begins ? -(float)duration_ns : (float)duration_ns);
}

void extract(extractor *x, const nl_record *record, uint64_t place, batch *b)
{
    const spec *s = x->spec;
    if (x->keeps_none || (x->filter != NULL && !nl_filter_matches(x->filter, record)))
        return;
    batch_row *row = batch_add(b);
    /* limit times to the range from November 1823 to February 2116, so that the difference of two times does not
     * overflow */
    const int64_t time_ns = time_zones_record_time(x->zones, x->clocks, record, place);
    row->time_ns = CLAMP(time_ns, INT64_MIN / 2, INT64_MAX / 2);
    row->place = place;
    row->event = names_put_cached(x->names.events, &x->events, record->event);
    row->host = names_put_cached(x->names.hosts, &x->hosts, record->host);
    row->prog = names_put_cached(x->names.progs, &x->progs, record->prog);
    if (record->event.size > 0 && (*record->event.data == 'N' || *record->event.data == 'C'))
        extract_clock(s, record, b, row);
    extract_duration(x, record, b, row);
    if (row->event >= s->event_count)
        return;
    const spec_event *plan = &s->events[row->event];
    batch_step *steps = &b->steps[(b->count - 1) * b->layers];
    for (unsigned layer = 0; layer < s->layers; layer++) {
        uint16_t lifeline = plan->steps[layer].lifeline;
        if (lifeline == SPEC_NONE)
            continue;
        steps[layer].key = key_of(x, lifeline, record);
        steps[layer].color = color_of(x, &s->lifelines[lifeline], record);
    }
    if (plan->loadline_count > 0)
        extract_values(s, plan, record, b, row);
}
