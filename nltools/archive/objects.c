#include "config.h"

#include "archive/objects.h"

#include "requests/infer.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 20000 };

struct objects {
    char **ids; /* lists of ID fields from the command line */
    size_t count;
    trace *sample;
};

bool objects_are_fields(const char *ids)
{
    const char *at = ids;
    for (;;) {
        size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
        if (size == 0)
            return false;
        if (at[size] == '\0')
            return true;
        if (at[size] != ',')
            return false;
        at += size + 1;
    }
}

objects *objects_new(char **ids, size_t count)
{
    objects *l = nl_memory_check(calloc(1, sizeof *l));
    l->ids = ids;
    l->count = count;
    l->sample = trace_new();
    return l;
}

void objects_free(objects *l)
{
    trace_free(l->sample);
    free(l);
}

void objects_see(objects *l, const nl_record *record)
{
    if (l->count == 0 && trace_count(l->sample) < SAMPLE)
        trace_add(l->sample, record);
}

/* ---- the views ---- */

typedef struct definitions {
    store *store;
    nl_buffer sql;
    size_t count;
} definitions;

static void add_path(const definitions *d, nl_buffer *out, const char *field, size_t size)
{
    char *name = nl_memory_check(strndup(field, size));
    _Pragma("GCC diagnostic push");
    _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"");
    store_add(out, d->store->kind->path, name);
    _Pragma("GCC diagnostic pop");
    free(name);
}

/* Appends the query for the list of ID fields in columns[0] to the definition of the view. Returns true, which requests
 * the next row. */
static bool add_steps(void *user, const nl_string *columns)
{
    definitions *d = user;
    nl_buffer object = {0}, present = {0};
    char *fields = strndup(columns[0].data, columns[0].size);
    if (fields == NULL || !objects_are_fields(fields)) {
        free(fields);
        return true;
    }
    for (const char *at = fields; *at != '\0';) {
        size_t size = strcspn(at, ",");
        if (object.size > 0)
            store_add(&object, " || ' ' || ");
        if (present.size > 0)
            store_add(&present, " AND ");
        add_path(d, &object, at, size);
        add_path(d, &present, at, size);
        store_add(&present, " IS NOT NULL");
        at += size + (at[size] == ',');
    }
    store_add(&d->sql,
              "%s SELECT '%s' AS lifeline, object, id, time_ns, event, host, prog, lead(event) OVER w AS next_event, "
              "lead(time_ns) OVER w - time_ns AS ns FROM (SELECT id, time_ns, event, host, prog, %.*s AS object FROM "
              "entry WHERE %.*s) objects WINDOW w AS (PARTITION BY object ORDER BY time_ns, id)",
              d->count++ > 0 ? " UNION ALL" : "CREATE VIEW steps AS", fields, (int)object.size, object.data,
              (int)present.size, present.data);
    nl_buffer_free(&object);
    nl_buffer_free(&present);
    free(fields);
    return true;
}

static nl_status make_views(store *s)
{
    definitions d = {.store = s};
    nl_status status = s->kind->select(s, "SELECT fields FROM lifeline ORDER BY fields", add_steps, &d);
    if (status == NL_OK && d.count > 0) {
        store_add(&d.sql, "; CREATE VIEW lifelines AS SELECT lifeline, object, min(time_ns) AS begin_ns, max(time_ns) "
                          "AS end_ns, (max(time_ns) - min(time_ns)) / 1000000.0 AS ms, count(*) AS steps FROM steps "
                          "GROUP BY lifeline, object");
        nl_buffer_append(&d.sql, "", 1);
        status = s->kind->run(s, "DROP VIEW IF EXISTS lifelines; DROP VIEW IF EXISTS steps");
        if (status == NL_OK)
            status = s->kind->run(s, d.sql.data);
    }
    nl_buffer_free(&d.sql);
    return status;
}

/* ---- lifelines ---- */

static nl_status objects_add(store *s, const char *fields)
{
    nl_buffer sql = {0};
    store_add(&sql, "INSERT INTO lifeline (fields) VALUES (");
    store_quote(&sql, nl_string_of(fields));
    store_add(&sql, ") ON CONFLICT DO NOTHING");
    nl_buffer_append(&sql, "", 1);
    nl_status status = s->kind->run(s, sql.data);
    nl_buffer_free(&sql);
    return status;
}

static nl_status add_found(objects *l, store *s)
{
    nl_status status = NL_OK;
    if (trace_count(l->sample) == 0)
        return NL_OK;
    trace_sort(l->sample);
    drawing *d = infer_drawing(l->sample);
    for (guint i = 0; i < d->lifelines->len && status == NL_OK; i++) {
        const drawing_lifeline *line = g_ptr_array_index(d->lifelines, i);
        char *fields = g_strjoinv(",", line->ids);
        if (objects_are_fields(fields))
            status = objects_add(s, fields);
        g_free(fields);
    }
    drawing_free(d);
    return status;
}

static bool objects_note(void *user, const nl_string *columns)
{
    (void)columns;
    *(bool *)user = true;
    return false;
}

static nl_status define(objects *l, store *s)
{
    bool any = l->count > 0;
    nl_status status = NL_OK;
    for (size_t i = 0; i < l->count && status == NL_OK; i++)
        status = objects_add(s, l->ids[i]);
    if (status == NL_OK && !any)
        status = s->kind->select(s, "SELECT fields FROM lifeline", objects_note, &any);
    if (status == NL_OK && !any)
        status = add_found(l, s);
    else if (l->count == 0)
        return status; /* no new fields */
    return status == NL_OK ? make_views(s) : status;
}

nl_status objects_define(objects *l, store *s)
{
    if (s->kind->begin(s) != NL_OK)
        return NL_FAILED;
    nl_status status = define(l, s);
    if (status == NL_OK)
        status = s->kind->commit(s);
    if (status != NL_OK)
        s->kind->undo(s);
    return status;
}
