/* SQLite databases, which are files. */
#include "config.h"

#include "archive/store.h"
#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, COLUMNS_MAX = 16 };

typedef struct sqlite {
    store base;
    sqlite3 *db;
    sqlite3_stmt *insert;
    bool inside; /* inside a transaction */
    bool loads;
    char *name;
} sqlite;

static const char tables_sql[] =
    "CREATE TABLE archive (version INTEGER NOT NULL, generation INTEGER NOT NULL);"
    "CREATE TABLE entry (id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, host TEXT, prog TEXT, level TEXT, event "
    "TEXT,"
    " fields TEXT NOT NULL, source INTEGER NOT NULL, packed BLOB NOT NULL);"
    "CREATE INDEX entry_time ON entry (time_ns);"
    "CREATE TABLE source (id INTEGER PRIMARY KEY, name TEXT NOT NULL, head_size INTEGER, head INTEGER, position "
    "INTEGER,"
    " lines INTEGER, latest_ns INTEGER);"
    "CREATE TABLE stream (stream TEXT PRIMARY KEY, next INTEGER, latest_ns INTEGER, gaps TEXT) WITHOUT ROWID;"
    "CREATE TABLE lifeline (fields TEXT PRIMARY KEY);"
    "CREATE VIEW events AS SELECT id, strftime('%Y-%m-%dT%H:%M:%S', (time_ns - (time_ns % 1000000000 + 1000000000) %"
    " 1000000000) / 1000000000, 'unixepoch') || printf('.%06dZ', (time_ns % 1000000000 + 1000000000) % 1000000000 / "
    "1000)"
    " AS time, time_ns, host, prog, level, event, fields FROM entry;"
    "CREATE VIEW fields AS SELECT e.id AS id, e.time_ns, e.event, f.key AS name, f.atom AS value FROM entry e,"
    " json_each(e.fields) f;";

static nl_status sqlite_fail(const sqlite *s, const char *doing)
{
    int code = sqlite3_errcode(s->db);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return nl_error_set(NL_ERROR_BUSY, "%s: locked by another program", s->name);
    return nl_error_set(NL_ERROR_SYSTEM, "%s: %s: %s", s->name, doing, sqlite3_errmsg(s->db));
}

static nl_status sqlite_run(store *base, const char *sql)
{
    sqlite *s = (sqlite *)base;
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? NL_OK : sqlite_fail(s, "write");
}

static nl_string column_of(sqlite3_stmt *statement, int i)
{
    if (sqlite3_column_type(statement, i) == SQLITE_NULL)
        return (nl_string){NULL, 0};
    if (sqlite3_column_type(statement, i) == SQLITE_BLOB) {
        const char *bytes = sqlite3_column_blob(statement, i);
        return (nl_string){bytes != NULL ? bytes : "", (size_t)sqlite3_column_bytes(statement, i)};
    }
    const char *text = (const char *)sqlite3_column_text(statement, i);
    return (nl_string){text, (size_t)sqlite3_column_bytes(statement, i)};
}

static nl_status select_rows(store *base, const char *sql, bool (*function)(void *user, const nl_string *columns),
                             void *user)
{
    sqlite *s = (sqlite *)base;
    sqlite3_stmt *statement;
    nl_string columns[COLUMNS_MAX];
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return sqlite_fail(s, "read");
    int count = sqlite3_column_count(statement), result;
    bool more = true;
    while (more && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < count && i < COLUMNS_MAX; i++)
            columns[i] = column_of(statement, i);
        more = function(user, columns);
    }
    nl_status status = !more || result == SQLITE_DONE ? NL_OK : sqlite_fail(s, "read");
    sqlite3_finalize(statement);
    return status;
}

static void close_store(store *base)
{
    sqlite *s = (sqlite *)base;
    sqlite3_finalize(s->insert);
    if (s->loads) /* remove the write-ahead log, so that users without write permission can read the database */
        sqlite3_exec(s->db, "PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    sqlite3_close(s->db);
    free(s->name);
    free(s);
}

static bool sqlite_note_page(void *user, const nl_string *columns)
{
    *(bool *)user = columns[0].size == 1 && columns[0].data[0] == '0';
    return true;
}

/*
 * Chooses the journal and the size of the page cache. With a write-ahead log, readers can continue during a load, but
 * SQLite writes every page twice. A load of a new database, which has no readers yet, therefore uses a rollback
 * journal, unless --follow is given. The page cache has 8 MiB, so that it fits into the caches of many processors.
 */
static nl_status settle(sqlite *s, store_purpose purpose)
{
    bool is_new = false;
    sqlite3_busy_timeout(s->db, PATIENCE_MS);
    if (purpose == STORE_READ)
        return NL_OK;
    s->loads = true;
    if (purpose == STORE_LOAD && select_rows(&s->base, "PRAGMA page_count", sqlite_note_page, &is_new) != NL_OK)
        return NL_FAILED;
    if (sqlite_run(&s->base, is_new ? "PRAGMA journal_mode = TRUNCATE" : "PRAGMA journal_mode = WAL") != NL_OK)
        return NL_FAILED;
    return sqlite_run(&s->base, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY");
}

/* Sets the error after SQLite has failed to open the database. */
static void fail_to_open(const sqlite *s, store_purpose purpose)
{
    int cause = sqlite3_system_errno(s->db);
    char *directory = g_path_get_dirname(s->name);
    if (cause == ENOENT && purpose != STORE_READ && access(directory, W_OK) != 0)
        cause = errno; /* not errno, because a second attempt of SQLite, to open the file only for reading, has set
                          ENOENT */
    g_free(directory);
    if (cause != 0)
        nl_error_set(NL_ERROR_SYSTEM, "open %s: %s", s->name, strerror(cause));
    else
        sqlite_fail(s, "open");
}

static store *open_store(const char *where, store_purpose purpose)
{
    sqlite *s = nl_memory_check(calloc(1, sizeof *s));
    s->name = nl_memory_check(strdup(where));
    s->base.kind = &sqlite_store;
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* no memory statistics, which need a lock for each allocation */
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE; /* only one thread uses the database */
    if (purpose != STORE_READ)
        flags |= SQLITE_OPEN_CREATE;
    int result = sqlite3_open_v2(where, &s->db, flags, NULL);
    if (result != SQLITE_OK && purpose == STORE_READ) { /* the file or the directory may be write-protected */
        sqlite3_close(s->db);
        result = sqlite3_open_v2(where, &s->db, SQLITE_OPEN_READONLY, NULL);
    }
    if (result == SQLITE_OK && settle(s, purpose) == NL_OK)
        return &s->base;
    if (result != SQLITE_OK)
        fail_to_open(s, purpose);
    close_store(&s->base);
    return NULL;
}

static nl_status sqlite_begin(store *base)
{
    sqlite *s = (sqlite *)base;
    s->inside = sqlite_run(base, "BEGIN IMMEDIATE") == NL_OK;
    return s->inside ? NL_OK : NL_FAILED;
}

static nl_status commit(store *base)
{
    sqlite *s = (sqlite *)base;
    if (sqlite_run(base, "COMMIT") != NL_OK)
        return NL_FAILED;
    s->inside = false;
    return NL_OK;
}

static void undo(store *base)
{
    sqlite *s = (sqlite *)base;
    if (s->inside)
        /* Ignore an error, because SQLite may already have rolled back when the disk was full. */
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->inside = false;
}

static void bind(sqlite3_stmt *statement, int at, nl_string text)
{
    if (text.data == NULL)
        sqlite3_bind_null(statement, at);
    else
        sqlite3_bind_text(statement, at, text.data, (int)text.size, SQLITE_STATIC);
}

static nl_status sqlite_put(store *base, const row *r, int64_t source)
{
    sqlite *s = (sqlite *)base;
    static const char sql[] = "INSERT INTO entry (time_ns, host, prog, level, event, fields, source, packed) VALUES "
                              "(?, ?, ?, ?, ?, ?, ?, ?)";
    if (s->insert == NULL &&
        sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->insert, NULL) != SQLITE_OK)
        return sqlite_fail(s, "write");
    sqlite3_bind_int64(s->insert, 1, r->time_ns);
    bind(s->insert, 2, r->host);
    bind(s->insert, 3, r->prog);
    bind(s->insert, 4, r->level);
    bind(s->insert, 5, r->event);
    bind(s->insert, 6, r->fields);
    sqlite3_bind_int64(s->insert, 7, source);
    sqlite3_bind_blob(s->insert, 8, r->packed.data, (int)r->packed.size, SQLITE_STATIC);
    nl_status status = sqlite3_step(s->insert) == SQLITE_DONE ? NL_OK : sqlite_fail(s, "write");
    sqlite3_reset(s->insert);
    return status;
}

static nl_status end_put(store *base)
{
    (void)base;
    return NL_OK;
}

const store_kind sqlite_store = {
    .name = "sqlite",
    .open = open_store,
    .close = close_store,
    .begin = sqlite_begin,
    .put = sqlite_put,
    .end_put = end_put,
    .commit = commit,
    .undo = undo,
    .run = sqlite_run,
    .select = select_rows,
    .tables_sql = tables_sql,
    .path = "json_extract(fields, '$.\"%s\"')",
};
