/* PostgreSQL databases. COPY stores the records in the same transaction as the other statements. */
#include "config.h"

#include "archive/store.h"
#include "base/error.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/library.h"
#include "program/program.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

/* The functions of libpq, which the module loads when it opens a database. */
#define POSTGRES_FUNCTIONS(FUNCTION)                                                                                   \
    FUNCTION(PQ, cancel)                                                                                               \
    FUNCTION(PQ, clear)                                                                                                \
    FUNCTION(PQ, connectdb)                                                                                            \
    FUNCTION(PQ, errorMessage)                                                                                         \
    FUNCTION(PQ, exec)                                                                                                 \
    FUNCTION(PQ, finish)                                                                                               \
    FUNCTION(PQ, freeCancel)                                                                                           \
    FUNCTION(PQ, freemem)                                                                                              \
    FUNCTION(PQ, ftype)                                                                                                \
    FUNCTION(PQ, getCancel)                                                                                            \
    FUNCTION(PQ, getResult)                                                                                            \
    FUNCTION(PQ, getisnull)                                                                                            \
    FUNCTION(PQ, getlength)                                                                                            \
    FUNCTION(PQ, getvalue)                                                                                             \
    FUNCTION(PQ, nfields)                                                                                              \
    FUNCTION(PQ, ping)                                                                                                 \
    FUNCTION(PQ, putCopyData)                                                                                          \
    FUNCTION(PQ, putCopyEnd)                                                                                           \
    FUNCTION(PQ, resultStatus)                                                                                         \
    FUNCTION(PQ, sendQuery)                                                                                            \
    FUNCTION(PQ, setNoticeProcessor)                                                                                   \
    FUNCTION(PQ, setSingleRowMode)                                                                                     \
    FUNCTION(PQ, status)                                                                                               \
    FUNCTION(PQ, unescapeBytea)

NL_LIBRARY_DEFINE(pq, POSTGRES_LIBRARY, POSTGRES_FUNCTIONS);

enum { COLUMNS_MAX = 16, SEND_SIZE = 256 << 10, BYTEA_OID = 17 };

typedef struct postgres {
    store base;
    PGconn *connection;
    char *name; /* the URL without the password, for messages */
    bool inside, copying;
    nl_buffer rows; /* rows for COPY that have not been sent yet */
} postgres;

static const char tables_sql[] =
    "CREATE TABLE archive (version bigint NOT NULL, generation bigint NOT NULL);"
    "CREATE TABLE entry (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, time_ns bigint NOT NULL, host text,"
    " prog text, level text, event text, fields jsonb NOT NULL, source bigint NOT NULL, packed bytea NOT NULL);"
    "CREATE INDEX entry_time ON entry (time_ns);"
    "CREATE TABLE source (id bigint PRIMARY KEY, name text NOT NULL, head_size bigint, head bigint, position bigint,"
    " lines bigint, latest_ns bigint);"
    "CREATE TABLE stream (stream text PRIMARY KEY, next bigint, latest_ns bigint, gaps text);"
    "CREATE TABLE lifeline (fields text PRIMARY KEY);"
    "CREATE VIEW events AS SELECT id, timestamptz 'epoch' + time_ns / 1000 * interval '1 microsecond' AS time, time_ns,"
    " host, prog, level, event, fields FROM entry;"
    "CREATE VIEW fields AS SELECT e.id, e.time_ns, e.event, f.key AS name, f.value FROM entry e,"
    " LATERAL jsonb_each_text(e.fields) f;";

/* Sets the error to the first line of the message of the server or the connection. Returns NL_FAILED. */
static nl_status postgres_fail(const postgres *p, const char *doing)
{
    const char *message = pq.errorMessage(p->connection);
    if (strncmp(message, "ERROR:  ", 8) == 0)
        message += 8;
    int size = (int)strcspn(message, "\n");
    if (size == 0)
        return nl_error_set(NL_ERROR_UNREACHABLE, "%s: %s: connection lost", p->name, doing);
    return nl_error_set(NL_ERROR_SYSTEM, "%s: %s: %.*s", p->name, doing, size, message);
}

static nl_status postgres_run(store *base, const char *sql)
{
    postgres *p = (postgres *)base;
    PGresult *result = pq.exec(p->connection, sql);
    ExecStatusType got = pq.resultStatus(result);
    nl_status status = got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK ? NL_OK : postgres_fail(p, "write");
    pq.clear(result);
    return status;
}

/* Gets the columns of the first row of a result. free_columns frees the unescaped bytes in `owned`. */
static void get_columns(const PGresult *result, nl_string columns[COLUMNS_MAX], void *owned[COLUMNS_MAX])
{
    int count = pq.nfields(result);
    for (int i = 0; i < count && i < COLUMNS_MAX; i++) {
        owned[i] = NULL;
        columns[i] = (nl_string){pq.getvalue(result, 0, i), (size_t)pq.getlength(result, 0, i)};
        if (pq.getisnull(result, 0, i)) {
            columns[i] = (nl_string){NULL, 0};
        } else if (pq.ftype(result, i) == BYTEA_OID) {
            size_t size;
            owned[i] = pq.unescapeBytea((const unsigned char *)columns[i].data, &size);
            columns[i] = (nl_string){owned[i], size};
        }
    }
}

static void free_columns(const PGresult *result, void *owned[COLUMNS_MAX])
{
    for (int i = 0; i < pq.nfields(result) && i < COLUMNS_MAX; i++)
        pq.freemem(owned[i]); /* NOLINT(clang-analyzer-core.CallAndMessage): get_columns has set owned[i] */
}

static nl_status select_rows(store *base, const char *sql, bool (*function)(void *user, const nl_string *columns),
                             void *user)
{
    postgres *p = (postgres *)base;
    nl_string columns[COLUMNS_MAX];
    void *owned[COLUMNS_MAX];
    nl_status status = NL_OK;
    bool more = true;
    if (!pq.sendQuery(p->connection, sql) || !pq.setSingleRowMode(p->connection))
        return postgres_fail(p, "read");
    for (PGresult *result; (result = pq.getResult(p->connection)) != NULL; pq.clear(result)) {
        ExecStatusType got = pq.resultStatus(result);
        if (got == PGRES_SINGLE_TUPLE && more) {
            get_columns(result, columns, owned);
            more = function(user, columns);
            free_columns(result, owned);
            PGcancel *cancel = more ? NULL : pq.getCancel(p->connection);
            char message[256];
            if (cancel != NULL)
                pq.cancel(cancel, message, sizeof message);
            pq.freeCancel(cancel);
        } else if (got != PGRES_SINGLE_TUPLE && got != PGRES_TUPLES_OK && more) {
            status = postgres_fail(p, "read");
        }
    }
    return status;
}

static void close_store(store *base)
{
    postgres *p = (postgres *)base;
    pq.finish(p->connection);
    nl_buffer_free(&p->rows);
    free(p->name);
    free(p);
}

static void postgres_ignore_notice(void *user, const char *message)
{
    (void)user;
    (void)message;
}

/* Returns the URL without user, password and options, for messages. */
static char *postgres_name_of(const char *url)
{
    const char *slashes = strstr(url, "//"), *begin = slashes != NULL ? slashes + 2 : url, *host = begin;
    for (const char *c = begin; *c != '\0' && strchr("/?", *c) == NULL; c++)
        host = *c == '@' ? c + 1 : host; /* a password may contain an '@', although libpq then rejects the URL */
    return program_format("%.*s%.*s", (int)(begin - url), url, (int)strcspn(host, "?"), host);
}

/* Acquires the lock for loading. The server may still commit the records of a killed load. The next load must therefore
 * have the lock before it reads the positions. */
static nl_status be_the_only_one(postgres *p)
{
    if (postgres_run(&p->base, "SET lock_timeout = '20s'") == NL_OK &&
        postgres_run(&p->base, "SELECT pg_advisory_lock(8241947160312)") == NL_OK &&
        postgres_run(&p->base, "RESET lock_timeout") == NL_OK)
        return NL_OK;
    return nl_error_prepend("another nlarchive is loading into the database");
}

/*
 * Disables backslash escapes in literals, because store_quote does not escape backslashes. The settings of the database
 * or the role may enable these escapes.
 */
static nl_status quote_as_sql_does(postgres *p)
{
    return postgres_run(&p->base, "SET standard_conforming_strings = on");
}

/* Sets the error after a connection has failed. Names the remedy if no server replies. */
static void fail_connection(const postgres *p, const char *where)
{
    postgres_fail(p, "connect");
    if (pq.ping(where) == PQPING_NO_RESPONSE)
        nl_error_set(NL_ERROR_UNREACHABLE, "%s; is PostgreSQL running there?", nl_error_message());
}

static store *open_store(const char *where, store_purpose purpose)
{
    if (!nl_library_load(&pq_library))
        return NULL;
    postgres *p = nl_memory_check(calloc(1, sizeof *p));
    p->base.kind = &postgres_store;
    p->name = postgres_name_of(where);
    p->connection = pq.connectdb(where);
    if (pq.status(p->connection) == CONNECTION_OK) {
        pq.setNoticeProcessor(p->connection, postgres_ignore_notice, NULL);
        if (quote_as_sql_does(p) == NL_OK && (purpose == STORE_READ || be_the_only_one(p) == NL_OK))
            return &p->base;
    } else {
        fail_connection(p, where);
    }
    close_store(&p->base);
    return NULL;
}

static nl_status postgres_begin(store *base)
{
    postgres *p = (postgres *)base;
    p->inside = postgres_run(base, "BEGIN") == NL_OK;
    return p->inside ? NL_OK : NL_FAILED;
}

/* ---- COPY ---- */

static nl_status send_rows(postgres *p)
{
    if (p->rows.size > 0 && pq.putCopyData(p->connection, p->rows.data, (int)p->rows.size) != 1)
        return postgres_fail(p, "write");
    p->rows.size = 0;
    return NL_OK;
}

/* Appends text with the escape sequences of COPY, and then `end`. Writes a NULL text as \N. */
static void postgres_put_text(nl_buffer *out, nl_string text, char end)
{
    static const char special[] = "\\\t\n\r", letters[] = "\\tnr";
    if (text.data == NULL)
        nl_buffer_append(out, "\\N", 2);
    size_t copied = 0;
    for (size_t i = 0; i < text.size; i++) {
        /* all special bytes are control bytes or the backslash; check for these first, because most bytes are
         * ordinary */
        if ((unsigned char)text.data[i] >= ' ' && text.data[i] != '\\')
            continue;
        const char *found = text.data[i] != '\0' ? strchr(special, text.data[i]) : NULL;
        if (found == NULL)
            continue;
        nl_buffer_append(out, text.data + copied, i - copied);
        nl_buffer_append(out, (const char[2]){'\\', letters[found - special]}, 2);
        copied = i + 1;
    }
    if (text.size > copied)
        nl_buffer_append(out, text.data + copied, text.size - copied);
    nl_buffer_append(out, &end, 1);
}

/* Appends JSON. Replaces NUL with U+FFFD, because the server rejects NUL. */
static void put_json(nl_buffer *out, nl_string text)
{
    const char *at = text.data, *end = at + text.size, *mark;
    nl_buffer clean = {0};
    while ((mark = memmem(at, (size_t)(end - at), "\\u0000", 6)) != NULL) {
        size_t slashes = 0;
        while (mark - slashes > at && mark[-(ptrdiff_t)slashes - 1] == '\\')
            slashes++;
        nl_buffer_append(&clean, at, (size_t)(mark - at));
        nl_buffer_append(&clean, slashes % 2 == 0 ? "\\ufffd" : "\\u0000", 6);
        at = mark + 6;
    }
    if (clean.size > 0) {
        nl_buffer_append(&clean, at, (size_t)(end - at));
        text = (nl_string){clean.data, clean.size};
    }
    postgres_put_text(out, text, '\t');
    nl_buffer_free(&clean);
}

static void put_bytes(nl_buffer *out, nl_string bytes)
{
    static const char digits[] = "0123456789abcdef";
    nl_buffer_append(out, "\\\\x", 3);
    nl_buffer_reserve(out, 2 * bytes.size + 1);
    char *at = out->data + out->size;
    for (size_t i = 0; i < bytes.size; i++) {
        *at++ = digits[(unsigned char)bytes.data[i] >> 4];
        *at++ = digits[(unsigned char)bytes.data[i] & 15];
    }
    *at++ = '\n';
    out->size = (size_t)(at - out->data);
}

static nl_status begin_copy(postgres *p)
{
    PGresult *result =
        pq.exec(p->connection, "COPY entry (time_ns, host, prog, level, event, source, fields, packed) FROM "
                               "STDIN (ENCODING 'UTF8')");
    p->copying = pq.resultStatus(result) == PGRES_COPY_IN;
    pq.clear(result);
    return p->copying ? NL_OK : postgres_fail(p, "write");
}

static nl_status postgres_put(store *base, const row *r, int64_t source)
{
    postgres *p = (postgres *)base;
    if (!p->copying && begin_copy(p) != NL_OK)
        return NL_FAILED;
    store_add(&p->rows, "%lld\t", (long long)r->time_ns);
    postgres_put_text(&p->rows, r->host, '\t');
    postgres_put_text(&p->rows, r->prog, '\t');
    postgres_put_text(&p->rows, r->level, '\t');
    postgres_put_text(&p->rows, r->event, '\t');
    store_add(&p->rows, "%lld\t", (long long)source);
    put_json(&p->rows, r->fields);
    put_bytes(&p->rows, r->packed);
    return p->rows.size < SEND_SIZE ? NL_OK : send_rows(p);
}

static nl_status end_put(store *base)
{
    postgres *p = (postgres *)base;
    if (!p->copying)
        return NL_OK;
    p->copying = false;
    nl_status status = send_rows(p);
    p->rows.size = 0;
    if (pq.putCopyEnd(p->connection, status == NL_OK ? NULL : "given up") != 1 && status == NL_OK)
        status = postgres_fail(p, "write");
    for (PGresult *result; (result = pq.getResult(p->connection)) != NULL; pq.clear(result))
        if (pq.resultStatus(result) != PGRES_COMMAND_OK && status == NL_OK)
            status = postgres_fail(p, "write");
    return status;
}

static nl_status commit(store *base)
{
    postgres *p = (postgres *)base;
    if (postgres_run(base, "COMMIT") != NL_OK)
        return NL_FAILED;
    p->inside = false;
    return NL_OK;
}

/* Rolls back the transaction. Preserves the current error. */
static void undo(store *base)
{
    postgres *p = (postgres *)base;
    nl_error error;
    nl_error_save(&error);
    p->rows.size = 0;
    if (p->copying)
        pq.putCopyEnd(p->connection, "given up");
    for (PGresult *result; p->copying && (result = pq.getResult(p->connection)) != NULL;)
        pq.clear(result);
    p->copying = false;
    if (p->inside)
        pq.clear(pq.exec(p->connection, "ROLLBACK"));
    p->inside = false;
    nl_error_restore(&error);
}

const store_kind postgres_store = {
    .name = "postgresql",
    .open = open_store,
    .close = close_store,
    .begin = postgres_begin,
    .put = postgres_put,
    .end_put = end_put,
    .commit = commit,
    .undo = undo,
    .run = postgres_run,
    .select = select_rows,
    .tables_sql = tables_sql,
    .path = "(fields->>'%s')",
};
