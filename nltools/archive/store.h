/*
 * Accesses a database, whose tables doc/archive.md describes. sqlite.c and postgres.c implement the kinds of databases.
 *
 * A transaction stores records together with the position in their source and the sequence numbers of their streams.
 * The positions therefore match the records even if the program is killed. A function that fails sets the error. Not
 * thread-safe.
 */
#ifndef NLTOOLS_ARCHIVE_STORE_H
#define NLTOOLS_ARCHIVE_STORE_H

#include "archive/row.h"

#include <netlogger.h>

enum { STORE_VERSION = 1, STORE_HEAD_SIZE = 4096 };

/*
 * The position in a source. A hash of a file's first bytes identifies the file, even after it was renamed. The name
 * identifies a collector.
 */
typedef struct store_place {
    int64_t id; /* 0: not in the database yet */
    char *name;
    uint64_t head_size;       /* number of hashed bytes, up to STORE_HEAD_SIZE; 0: no hash */
    uint64_t head;            /* hash of the first bytes */
    uint64_t position, lines; /* numbers of loaded bytes (after decompression) and of loaded lines; in foreign formats,
                                 position is the number of records */
    int64_t latest_ns;        /* time of the latest record */
} store_place;

/* STORE_FOLLOW: a load with --follow, during which other programs read the database. */
typedef enum store_purpose { STORE_READ, STORE_LOAD, STORE_FOLLOW } store_purpose;

typedef struct store store;

typedef struct store_kind {
    const char *name;
    /* Opens the database at `where`, a file name or URL. Returns NULL and sets the error on failure. */
    store *(*open)(const char *where, store_purpose purpose);
    void (*close)(store *s);
    nl_status (*begin)(store *s);
    nl_status (*put)(store *s, const row *r, int64_t source);
    nl_status (*end_put)(store *s); /* ends a series of puts; required before other statements */
    nl_status (*commit)(store *s);
    void (*undo)(store *s);
    /* Runs statements without results. */
    nl_status (*run)(store *s, const char *sql);
    /* Calls `function` for each row, until `function` returns false. Columns are text or bytes. In a column with an SQL
     * NULL, `data` is NULL. */
    nl_status (*select)(store *s, const char *sql, bool (*function)(void *user, const nl_string *columns), void *user);
    const char *tables_sql;
    const char *path; /* SQL expression for a field's text; %s stands for the field's name */
} store_kind;

extern const store_kind sqlite_store, postgres_store;

/* The first member of the store struct of each kind of database. */
struct store {
    const store_kind *kind;
    int64_t generation; /* number of commits, to detect concurrent loads */
};

/* Opens a database by file name or URL. Except with STORE_READ, creates missing tables. Returns NULL and sets the error
 * on failure. */
store *store_open(const char *name, store_purpose purpose);
void store_close(store *s);

/* Reads all source positions. Sets *places to an array of *count elements. The caller frees the array and the names. */
nl_status store_read_places(store *s, store_place **places, size_t *count);

/* Reads the sequence numbers of all streams. */
nl_status store_read_streams(store *s, nl_streams *streams);

/* Begins a transaction for a source. If `place` is new, adds it to the database and sets its ID. */
nl_status store_begin(store *s, store_place *place);

/* Commits the transaction, with the position in `place` and the sequence numbers of the `size` streams in `names`.
 * Fails if another program has committed since the last check. Rolls back on failure. */
nl_status store_commit(store *s, store_place *place, const nl_streams *streams, const unsigned char (*names)[16],
                       size_t size);

/* Appends text as an SQL literal. Escapes only quotes, because quote_as_sql_does disables backslash escapes. */
void store_quote(nl_buffer *sql, nl_string text);

/* Appends text with printf formatting. */
void store_add(nl_buffer *sql, const char *format, ...) NL_PRINTF(2, 3);

#endif
