#include "config.h"

#include "compare/profile.h"

#include "diag/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 4096, SENSORS_MAX = 1024, BIN_SETS_MAX = 2048, EDGES_OF = 4096 };

static void profile_row_free(gpointer data)
{
    profile_row *row = data;
    for (unsigned f = 0; f < PROFILE_FIELDS_MAX; f++)
        g_free(row->bins[f]);
    g_free(row);
}

static void profile_field_free(gpointer data)
{
    profile_field *f = data;
    if (f->texts != NULL)
        g_ptr_array_free(f->texts, TRUE);
    g_free(f->name);
    g_free(f);
}

static void profile_sensor_free(gpointer data)
{
    profile_sensor *s = data;
    g_free(s->name);
    g_free(s);
}

static profile_row *profile_find_row(profile *p, uint32_t name, bool is_span)
{
    profile_row *row = g_hash_table_lookup(p->row_index, GUINT_TO_POINTER(name + 1));
    if (row == NULL && p->rows->len < ROWS_MAX) {
        row = g_new0(profile_row, 1);
        row->name = name;
        row->is_span = is_span;
        g_ptr_array_add(p->rows, row);
        g_hash_table_insert(p->row_index, GUINT_TO_POINTER(name + 1), row);
    }
    p->left_out = p->left_out || row == NULL;
    return row;
}

profile *profile_new(const unsigned log_counts[SIDES])
{
    profile *p = g_new0(profile, 1);
    for (int side = 0; side < SIDES; side++) {
        p->kinds[side].are_logs = log_counts[side] > 1;
        p->kinds[side].units = p->kinds[side].are_logs ? MIN(log_counts[side], UNITS_MAX) : UNITS_MAX;
    }
    p->rows = g_ptr_array_new_with_free_func(profile_row_free);
    p->fields = g_ptr_array_new_with_free_func(profile_field_free);
    p->sensors = g_ptr_array_new_with_free_func(profile_sensor_free);
    p->names = place_names_new();
    p->row_index = g_hash_table_new(NULL, NULL);
    p->field_index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    p->sensor_index = g_hash_table_new(g_str_hash, g_str_equal);
    profile_find_row(p, PLACE_NAME_NONE, false);
    return p;
}

void profile_free(profile *p)
{
    g_hash_table_destroy(p->row_index);
    g_hash_table_destroy(p->field_index);
    g_hash_table_destroy(p->sensor_index);
    g_ptr_array_free(p->rows, TRUE);
    g_ptr_array_free(p->fields, TRUE);
    g_ptr_array_free(p->sensors, TRUE);
    place_names_free(p->names);
    g_free(p);
}

/* ---- fields ---- */

/* Returns a copy of a text without the ":PORT" after each address. The caller frees it with g_free. */
static char *without_ports(const char *text)
{
    char *copy = g_strdup(text), *to = copy;
    for (const char *from = text; *from != '\0';) {
        size_t digits = *from == ':' ? strspn(from + 1, "0123456789") : 0;
        bool is_port = digits >= 4 && digits <= 5 && (from[1 + digits] == '\0' || from[1 + digits] == ' ');
        if (is_port && from > text)
            from += 1 + digits;
        else
            *to++ = *from++;
    }
    *to = '\0';
    return copy;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Chooses the bins of a field with numbers: one bin for each value if there are only a few values, otherwise ranges
 * with about equal counts. */
static void choose_edges(profile_field *f, const GArray *values)
{
    float *sorted = g_new(float, EDGES_OF);
    size_t count = 0, step = values->len / EDGES_OF + 1;
    for (guint i = 0; i < values->len && count < EDGES_OF; i += (guint)step)
        if (isfinite(g_array_index(values, float, i)))
            sorted[count++] = g_array_index(values, float, i);
    qsort(sorted, count, sizeof *sorted, compare_floats);
    size_t distinct = count > 0;
    for (size_t i = 1; i < count; i++)
        distinct += sorted[i] > sorted[i - 1];
    size_t parts = distinct <= BIN_OTHERS ? count : 8;
    for (size_t i = 1; i < parts; i++) {
        double edge = (double)sorted[i * count / parts];
        if (edge > (double)sorted[0] && (f->edge_count == 0 || edge > f->edges[f->edge_count - 1]))
            f->edges[f->edge_count++] = edge;
    }
    g_free(sorted);
}

/* First character of the key of a pseudo field, such as the kind of the request. No field in a log has a name that
 * begins with this character. */
#define PSEUDO '\n'

static profile_field *profile_find_field(profile *p, const char *name, bool is_text, const GArray *values)
{
    profile_field *f = g_hash_table_lookup(p->field_index, name);
    if (f == NULL && p->fields->len < PROFILE_FIELDS_MAX) {
        f = g_new0(profile_field, 1);
        f->name = *name == '@' ? g_strdup_printf("host of %s", name + 1) : g_strdup(name + (*name == PSEUDO));
        if (is_text)
            f->texts = g_ptr_array_new_with_free_func(g_free);
        else
            choose_edges(f, values);
        g_ptr_array_add(p->fields, f);
        g_hash_table_insert(p->field_index, g_strdup(name), f);
    }
    p->left_out = p->left_out || f == NULL;
    return f != NULL && (f->texts != NULL) == is_text ? f : NULL;
}

static uint8_t bin_of_text(profile_field *f, const char *text)
{
    char *name = without_ports(text);
    guint i = 0;
    while (i < f->texts->len && strcmp(g_ptr_array_index(f->texts, i), name) != 0)
        i++;
    if (i == f->texts->len && i < BIN_OTHERS)
        g_ptr_array_add(f->texts, name);
    else
        g_free(name);
    return (uint8_t)MIN(i, (guint)BIN_OTHERS);
}

/* Returns the bin of a kind of request in the field "kind". `name` is the number of the name of a place. */
static uint8_t bin_of_name(profile *p, profile_field *f, uint32_t name)
{
    unsigned i = 0;
    while (i < p->kind_count && p->kinds_of_requests[i] != name)
        i++;
    if (i < p->kind_count)
        return (uint8_t)i;
    char *text = without_ports(place_names_text(p->names, name)); /* two names may differ only in their ports */
    for (i = 0; i < p->kind_count && strcmp(g_ptr_array_index(f->texts, i), text) != 0;)
        i++;
    if (i == p->kind_count && i < BIN_OTHERS) {
        p->kinds_of_requests[p->kind_count++] = name;
        g_ptr_array_add(f->texts, text);
    } else {
        g_free(text);
    }
    return (uint8_t)MIN(i, (unsigned)BIN_OTHERS);
}

/* Updates the texts of the bins of the field "kind", because place_names_add may have changed a name to a pattern. */
static void update_kinds(const profile *p, profile_field *f)
{
    for (unsigned i = 0; i < p->kind_count; i++) {
        g_free(g_ptr_array_index(f->texts, i));
        g_ptr_array_index(f->texts, i) = without_ports(place_names_text(p->names, p->kinds_of_requests[i]));
    }
}

static uint8_t bin_of_number(const profile_field *f, double value)
{
    unsigned bin = 0;
    while (bin < f->edge_count && value >= f->edges[bin])
        bin++;
    return (uint8_t)bin;
}

char *profile_bin_name(const profile_field *f, unsigned bin)
{
    if (bin == BIN_ABSENT)
        return g_strdup_printf("no %s", f->name);
    if (f->texts != NULL)
        return bin < f->texts->len ? g_strdup_printf("%s=%s", f->name, (char *)g_ptr_array_index(f->texts, bin))
                                   : g_strdup_printf("another %s", f->name);
    if (f->edge_count == 0)
        return g_strdup_printf("any %s", f->name);
    if (bin == 0)
        return g_strdup_printf("%s below %g", f->name, f->edges[0]);
    return bin == f->edge_count ? g_strdup_printf("%s of %g or more", f->name, f->edges[bin - 1])
                                : g_strdup_printf("%s from %g to %g", f->name, f->edges[bin - 1], f->edges[bin]);
}

/* Maps a column of a log to a field, and the column's texts to bins. */
typedef struct field_map {
    const column *column;
    unsigned index; /* index of the field */
    profile_field *field;
    uint8_t bins[COLUMN_TEXTS_MAX]; /* indexed by text */
} field_map;

static uint8_t bin_in_map(const field_map *m, float value)
{
    if (isnan(value))
        return BIN_ABSENT;
    if (m->field->texts == NULL)
        return bin_of_number(m->field, (double)value);
    return value >= 0 && value < COLUMN_TEXTS_MAX ? m->bins[(unsigned)value] : BIN_OTHERS;
}

static unsigned field_number(const profile *p, const profile_field *f)
{
    guint index = 0;
    g_ptr_array_find(p->fields, f, &index);
    return index;
}

static size_t map_columns(profile *p, const visits *v, field_map *maps)
{
    size_t count = 0;
    for (uint32_t i = 0; i < v->columns->count; i++) {
        const column *c = &v->columns->all[i];
        profile_field *f = c->closed ? NULL : profile_find_field(p, c->name, c->has_text, c->of_requests);
        if (f == NULL)
            continue;
        field_map *m = &maps[count++];
        *m = (field_map){.column = c, .index = field_number(p, f), .field = f};
        for (guint n = 0; c->has_text && n < c->texts->len; n++)
            m->bins[n] = bin_of_text(f, g_ptr_array_index(c->texts, n));
        f->of_requests = c->at_begin * 10 >= v->requests->len * 9;
    }
    return count;
}

/* ---- sums ---- */

static void add_to(unit_sums *s, unsigned unit, double value)
{
    s->count[unit]++;
    s->sum[unit] += value;
}

static void add_to_bin(profile *p, profile_row *row, unsigned field, unsigned bin, int side, unsigned unit,
                       double value)
{
    if (row->bins[field] == NULL) {
        if (p->bins_used == BIN_SETS_MAX) {
            p->left_out = true;
            return;
        }
        p->bins_used++;
        row->bins[field] = g_new0(profile_bin, PROFILE_BINS);
    }
    add_to(&row->bins[field][bin].sides[side], unit, value);
}

typedef struct adding {
    profile *p;
    const visits *v;
    int side;
    unsigned unit; /* unit of the current request */
    field_map maps[COLUMNS_MAX];
    size_t map_count;
    profile_row **rows;     /* indexed by place */
    field_map kinds, hosts; /* pseudo fields: the kind of request, and the host of a visit */
    uint8_t *host_bins;     /* indexed by site */
} adding;

/* Returns the bin of a request's kind, which is the place of the first visit that no other visit contains. */
static uint8_t bin_of_kind(adding *a, const request *q)
{
    const visit *first = NULL;
    for (uint32_t n = 0; n < q->count; n++) {
        const visit *x = visit_at(a->v, q->first + n);
        if (x->parent == VISIT_NONE && (first == NULL || x->from_ns < first->from_ns))
            first = x;
    }
    const profile_row *row = first != NULL ? a->rows[place_of_visit(a->v, first)] : NULL;
    return row != NULL && a->kinds.field != NULL ? bin_of_name(a->p, a->kinds.field, row->name) : BIN_ABSENT;
}

static void add_request(adding *a, const request *q, uint32_t number, uint8_t kind_bin)
{
    profile_row *all = profile_row_at(a->p, 0);
    double took = (double)(q->to_ns - q->from_ns);
    add_to(&all->own[a->side], a->unit, took);
    all->path[a->side][a->unit] += took;
    a->p->failed[a->side][a->unit] += q->failed;
    for (size_t m = 0; m < a->map_count; m++)
        add_to_bin(a->p, all, a->maps[m].index,
                   bin_in_map(&a->maps[m], column_get(a->maps[m].column->of_requests, number)), a->side, a->unit, took);
    if (a->kinds.field != NULL)
        add_to_bin(a->p, all, a->kinds.index, kind_bin, a->side, a->unit, took);
}

static void add_visit_to_row(adding *a, uint32_t index, uint8_t kind_bin)
{
    const visit *x = visit_at(a->v, index);
    profile_row *row = a->rows[place_of_visit(a->v, x)];
    if (row == NULL)
        return;
    double own = fmax((double)x->own_ns, 0);
    add_to(&row->own[a->side], a->unit, own);
    row->path[a->side][a->unit] += (double)x->path_ns;
    for (size_t m = 0; m < a->map_count; m++) {
        const field_map *map = &a->maps[m];
        float value = column_get(map->column->of_requests, x->request),
              its = map->field->of_requests ? (float)NAN : column_get(map->column->of_visits, index);
        add_to_bin(a->p, row, map->index, bin_in_map(map, isnan(its) ? value : its), a->side, a->unit, own);
    }
    if (a->kinds.field != NULL)
        add_to_bin(a->p, row, a->kinds.index, kind_bin, a->side, a->unit, own);
    if (a->hosts.field != NULL)
        add_to_bin(a->p, row, a->hosts.index, a->host_bins[x->site], a->side, a->unit, own);
}

/* Returns the unit of the i-th of `count` requests or samples of the current log. Units are logs or, if the side has
 * only one log, parts of the log. */
static unsigned unit_of(const profile *p, int side, uint64_t i, uint64_t count)
{
    const unit_kind *kind = &p->kinds[side];
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): each side has units */
    return (unsigned)(kind->are_logs ? p->logs[side] % kind->units : i * kind->units / count);
}

/* Adds the samples of sensors. A sample belongs to the unit of the latest request that began before the sample. */
static void add_sensors(adding *a)
{
    const GPtrArray *all = series_all(a->v->series);
    for (guint i = 0; i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        if (strcmp(s->field, "CLOCK.SAMPLES") == 0) /* CLOCK.SAMPLES counts measurements, and measures nothing */
            continue;
        char *instance = without_ports(s->instance);
        const bool is_own = *instance == '\0' || strcmp(instance, s->host) == 0;
        char *name =
            g_strdup_printf("%s %s of %s%s%s", s->event, s->field, s->host, is_own ? "" : " ", is_own ? "" : instance);
        g_free(instance);
        profile_sensor *of = g_hash_table_lookup(a->p->sensor_index, name);
        if (of == NULL && a->p->sensors->len < SENSORS_MAX) {
            of = g_new0(profile_sensor, 1);
            of->name = g_strdup(name);
            g_ptr_array_add(a->p->sensors, of);
            g_hash_table_insert(a->p->sensor_index, of->name, of);
        }
        g_free(name);
        uint32_t request = 0;
        for (guint n = 0; of != NULL && n < s->samples->len; n++) {
            const series_sample *sample = &g_array_index(s->samples, series_sample, n);
            while (request + 1 < a->v->requests->len && request_at(a->v, request + 1)->from_ns <= sample->time_ns)
                request++;
            add_to(&of->sides[a->side], unit_of(a->p, a->side, request, a->v->requests->len), sample->value);
        }
    }
}

static field_map map_pseudo_field(profile *p, const char *name, bool of_requests)
{
    profile_field *f = profile_find_field(p, name, true, NULL);
    if (f == NULL)
        return (field_map){0};
    f->of_requests = of_requests;
    return (field_map){.field = f, .index = field_number(p, f)};
}

/* Returns the host of a site or, if this host is a value of a field, the caller's host. The field is another column. */
static const char *host_of_site(const visits *v, const site *s)
{
    return place_at(v, s->place)->has_value_hosts && *s->from_host != '\0' ? s->from_host : s->host;
}

void profile_add(profile *p, int side, const visits *v)
{
    adding a = {.p = p, .v = v, .side = side};
    a.rows = g_new0(profile_row *, v->places->len + 1);
    a.host_bins = g_new0(uint8_t, v->sites->len + 1);
    a.kinds = map_pseudo_field(p, "\nkind", true);
    a.hosts = map_pseudo_field(p, "\nhost", false);
    a.map_count = map_columns(p, v, a.maps);
    uint32_t *names = place_names_add(p->names, v);
    for (guint i = 0; i < v->places->len; i++) {
        const bool is_known = names[i] != PLACE_NAME_NONE;
        a.rows[i] = is_known ? profile_find_row(p, names[i], place_at(v, i)->kind == PLACE_SPAN) : NULL;
        p->left_out = p->left_out || !is_known;
    }
    g_free(names);
    for (guint i = 0; i < v->sites->len && a.hosts.field != NULL; i++)
        a.host_bins[i] = bin_of_text(a.hosts.field, host_of_site(v, site_at(v, i)));
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        uint8_t kind_bin = bin_of_kind(&a, q);
        a.unit = unit_of(p, side, i, v->requests->len);
        add_request(&a, q, i, kind_bin);
        for (uint32_t n = 0; n < q->count; n++)
            add_visit_to_row(&a, q->first + n, kind_bin);
    }
    add_sensors(&a);
    if (a.kinds.field != NULL)
        update_kinds(p, a.kinds.field);
    p->dropped[side] += v->dropped;
    p->logs[side]++;
    g_free(a.rows);
    g_free(a.host_bins);
}
