#include "config.h"

#include "stat/throughput.h"

#include <math.h>

void throughput_add(throughput *t, const nl_record *record)
{
    nl_field field;
    double value;
    if (!nl_record_find(record, t->field, &field))
        return;
    if (!nl_field_double(&field, &value) || !isfinite(value)) {
        t->unusable++;
        return;
    }
    t->from_ns = t->records == 0 || record->time_ns < t->from_ns ? record->time_ns : t->from_ns;
    t->to_ns = t->records == 0 || record->time_ns > t->to_ns ? record->time_ns : t->to_ns;
    t->records++;
    t->total += value;
    series_add(&t->series, record->time_ns, value);
}

double throughput_mean(const throughput *t)
{
    double seconds = ((double)t->to_ns - (double)t->from_ns) / 1e9;
    return seconds > 0 ? t->total / seconds : 0;
}

void throughput_clear(throughput *t)
{
    series_clear(&t->series);
}
