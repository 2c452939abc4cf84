#include "config.h"

#include "archive/store.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- SQL ---- */

void store_add(nl_buffer *sql, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0)
        nl_memory_failed();
    nl_buffer_append(sql, text, (size_t)size);
    free(text);
}

void store_quote(nl_buffer *sql, nl_string text)
{
    nl_buffer_append(sql, "'", 1);
    for (size_t i = 0; i < text.size; i++)
        nl_buffer_append(sql, text.data[i] == '\'' ? "''" : &text.data[i], text.data[i] == '\'' ? 2 : 1);
    nl_buffer_append(sql, "'", 1);
}

static nl_status store_run(store *s, nl_buffer *sql)
{
    nl_buffer_append(sql, "", 1);
    nl_status status = s->kind->run(s, sql->data);
    nl_buffer_free(sql);
    return status;
}

static int64_t store_number_of(nl_string column)
{
    return column.data != NULL ? strtoll(column.data, NULL, 10) : 0;
}

static bool store_parse_number(void *user, const nl_string *columns)
{
    *(int64_t *)user = store_number_of(columns[0]);
    return true;
}

/* ---- opening ---- */

static const store_kind *kind_of(const char *name)
{
    bool server = strncmp(name, "postgresql://", 13) == 0 || strncmp(name, "postgres://", 11) == 0;
    return server ? &postgres_store : &sqlite_store;
}

static nl_status make_tables(store *s)
{
    nl_buffer sql = {0};
    store_add(&sql, "%s", s->kind->tables_sql);
    store_add(&sql, "INSERT INTO archive (version, generation) VALUES (%d, 0);", STORE_VERSION);
    nl_status status = s->kind->begin(s);
    if (status == NL_OK)
        status = store_run(s, &sql);
    if (status == NL_OK)
        status = s->kind->commit(s);
    if (status != NL_OK)
        s->kind->undo(s);
    return status;
}

static bool store_read_state(void *user, const nl_string *columns)
{
    int64_t *state = user;
    state[0] = store_number_of(columns[0]);
    state[1] = store_number_of(columns[1]);
    return true;
}

/* Checks the version of the tables, or creates the tables before the first load. */
static nl_status store_look(store *s, const char *name, store_purpose purpose)
{
    int64_t state[2] = {0, 0};
    nl_status status = s->kind->select(s, "SELECT version, generation FROM archive", store_read_state, state);
    if (status != NL_OK && purpose == STORE_READ)
        return nl_error_prepend("%s: not a database of nlarchive", name);
    if (status != NL_OK) {
        int64_t others = 0;
        if (s->kind->select(s, "SELECT count(*) FROM entry", store_parse_number, &others) == NL_OK)
            return nl_error_set(NL_ERROR_INVALID, "%s: the table \"entry\" is not from nlarchive", name);
        if (make_tables(s) != NL_OK)
            return nl_error_prepend("%s: create the tables", name);
        return NL_OK;
    }
    s->generation = state[1];
    if (state[0] > STORE_VERSION)
        return nl_error_set(NL_ERROR_INVALID,
                            "%s: the tables have version %" PRId64 "; this nlarchive supports version %d", name,
                            state[0], STORE_VERSION);
    return NL_OK;
}

store *store_open(const char *name, store_purpose purpose)
{
    const store_kind *kind = kind_of(name);
    store *s = kind != NULL ? kind->open(name, purpose) : NULL;
    if (s == NULL || store_look(s, name, purpose) == NL_OK)
        return s;
    store_close(s);
    return NULL;
}

void store_close(store *s)
{
    if (s != NULL)
        s->kind->close(s);
}

/* ---- places ---- */

typedef struct places {
    store_place *list;
    size_t count;
} places;

static bool store_add_place(void *user, const nl_string *columns)
{
    places *p = user;
    p->list = nl_memory_check(realloc(p->list, (p->count + 1) * sizeof *p->list));
    char *name = nl_memory_check(strndup(columns[1].data != NULL ? columns[1].data : "", columns[1].size));
    p->list[p->count++] = (store_place){.id = store_number_of(columns[0]),
                                        .name = name,
                                        .head_size = (uint64_t)store_number_of(columns[2]),
                                        .head = (uint64_t)store_number_of(columns[3]),
                                        .position = (uint64_t)store_number_of(columns[4]),
                                        .lines = (uint64_t)store_number_of(columns[5]),
                                        .latest_ns = store_number_of(columns[6])};
    return true;
}

nl_status store_read_places(store *s, store_place **list, size_t *count)
{
    places p = {0};
    nl_status status = s->kind->select(
        s, "SELECT id, name, head_size, head, position, lines, latest_ns FROM source ORDER BY id", store_add_place, &p);
    *list = p.list;
    *count = p.count;
    return status;
}

/* ---- streams ---- */

static void put_hex(nl_buffer *out, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        store_add(out, "%02x", bytes[i]);
}

static bool store_add_stream(void *user, const nl_string *columns)
{
    nl_stream_state state = {.next = (uint64_t)store_number_of(columns[1]), .latest_ns = store_number_of(columns[2])};
    unsigned char any = 0;
    for (size_t i = 0; i < sizeof state.stream && columns[0].size == 2 * sizeof state.stream; i++) {
        char digits[3] = {columns[0].data[2 * i], columns[0].data[2 * i + 1], '\0'};
        any |= state.stream[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    nl_buffer gaps = {0};
    for (const char *at = columns[3].data != NULL ? columns[3].data : ""; *at != '\0';) {
        char *dash, *end;
        nl_number_range gap = {.from = strtoull(at, &dash, 10)};
        if (*dash != '-')
            break;
        gap.to = strtoull(dash + 1, &end, 10);
        nl_buffer_append(&gaps, (const char *)&gap, sizeof gap);
        at = end + (*end == ' ');
    }
    state.gap_count = gaps.size / sizeof *state.gaps;
    state.gaps = (const nl_number_range *)gaps.data;
    if (any != 0)
        nl_streams_set(user, &state);
    nl_buffer_free(&gaps);
    return true;
}

nl_status store_read_streams(store *s, nl_streams *streams)
{
    return s->kind->select(s, "SELECT stream, next, latest_ns, gaps FROM stream ORDER BY latest_ns", store_add_stream,
                           streams);
}

static void add_stream(nl_buffer *sql, const nl_stream_state *state)
{
    store_add(sql, "INSERT INTO stream (stream, next, latest_ns, gaps) VALUES ('");
    put_hex(sql, state->stream, sizeof state->stream);
    store_add(sql, "', %" PRId64 ", %" PRId64 ", '", (int64_t)state->next, state->latest_ns);
    for (size_t i = 0; i < state->gap_count; i++)
        store_add(sql, "%s%" PRIu64 "-%" PRIu64, i > 0 ? " " : "", state->gaps[i].from, state->gaps[i].to);
    store_add(sql, "') ON CONFLICT (stream) DO UPDATE SET next = excluded.next, latest_ns = excluded.latest_ns, gaps = "
                   "excluded.gaps;");
}

/* ---- transactions ---- */

nl_status store_begin(store *s, store_place *place)
{
    if (s->kind->begin(s) != NL_OK)
        return NL_FAILED;
    if (place->id != 0)
        return NL_OK;
    nl_buffer sql = {0};
    store_add(&sql, "INSERT INTO source (id, name, head_size, head, position, lines, latest_ns) SELECT "
                    "coalesce(max(id), 0) + 1, ");
    store_quote(&sql, nl_string_of(place->name));
    store_add(&sql, ", 0, 0, 0, 0, 0 FROM source");
    if (store_run(s, &sql) == NL_OK &&
        s->kind->select(s, "SELECT max(id) FROM source", store_parse_number, &place->id) == NL_OK)
        return NL_OK;
    s->kind->undo(s);
    return NL_FAILED;
}

/* Increments the database's number of commits. Fails if another program has committed since the last check, because
 * that program may have stored the same records. */
static nl_status claim(store *s)
{
    int64_t generation = -1;
    nl_buffer sql = {0};
    store_add(&sql, "UPDATE archive SET generation = generation + 1");
    if (store_run(s, &sql) != NL_OK ||
        s->kind->select(s, "SELECT generation FROM archive", store_parse_number, &generation) != NL_OK)
        return NL_FAILED;
    if (generation != s->generation + 1)
        return nl_error_set(NL_ERROR_BUSY, "another nlarchive is loading into the database; stopped");
    return NL_OK;
}

static nl_status put_place(store *s, const store_place *place)
{
    nl_buffer sql = {0};
    store_add(&sql, "UPDATE source SET name = ");
    store_quote(&sql, nl_string_of(place->name));
    store_add(&sql,
              ", head_size = %" PRIu64 ", head = %" PRId64 ", position = %" PRIu64 ", lines = %" PRIu64
              ", latest_ns = %" PRId64 " WHERE id = %" PRId64,
              place->head_size, (int64_t)place->head, place->position, place->lines, place->latest_ns, place->id);
    return store_run(s, &sql);
}

static nl_status put_streams(store *s, const nl_streams *streams, const unsigned char (*names)[16], size_t size)
{
    nl_buffer sql = {0};
    nl_stream_state state;
    for (size_t i = 0; i < size; i++)
        if (nl_streams_get(streams, names[i], &state))
            add_stream(&sql, &state);
    return sql.size > 0 ? store_run(s, &sql) : NL_OK;
}

nl_status store_commit(store *s, store_place *place, const nl_streams *streams, const unsigned char (*names)[16],
                       size_t size)
{
    if (s->kind->end_put(s) == NL_OK && claim(s) == NL_OK && put_place(s, place) == NL_OK &&
        put_streams(s, streams, names, size) == NL_OK && s->kind->commit(s) == NL_OK) {
        s->generation++;
        return NL_OK;
    }
    s->kind->undo(s);
    return NL_FAILED;
}
