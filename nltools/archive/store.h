/*
 * The database of an archive, with the tables of doc/archive.md. Each kind of database is one file: sqlite.c,
 * postgres.c.
 *
 * A transaction has the records, the position in each source, and the numbers of each stream. Therefore the positions
 * agree with the records however the program ends. A function that fails sets the error. One thread.
 */
#ifndef NLTOOLS_ARCHIVE_STORE_H
#define NLTOOLS_ARCHIVE_STORE_H

#include "archive/row.h"

#include <netlogger.h>

enum { STORE_VERSION = 1, STORE_HEAD_SIZE = 4096 };

/* The position in a source. The first bytes identify a file under any name; the name identifies a collector. */
typedef struct store_place {
    int64_t id; /* 0: not in the database yet */
    char *name;
    uint64_t head_size;       /* bytes in the hash, up to STORE_HEAD_SIZE; 0: no hash */
    uint64_t head;            /* hash of the first bytes */
    uint64_t position, lines; /* bytes, after decompression, and lines that were loaded */
    int64_t latest_ns;        /* the latest time */
} store_place;

typedef enum store_purpose { STORE_READ, STORE_LOAD } store_purpose;

typedef struct store store;

typedef struct store_kind {
    const char *name;
    /* where is a file or a URL. STORE_LOAD creates missing tables. */
    store *(*open)(const char *where, store_purpose purpose);
    void (*close)(store *s);
    /* Begins a transaction. */
    nl_status (*begin)(store *s);
    nl_status (*put)(store *s, const row *r, int64_t source);
    nl_status (*end_put)(store *s); /* before other statements */
    nl_status (*commit)(store *s);
    void (*undo)(store *s);
    /* Runs statements without results. */
    nl_status (*run)(store *s, const char *sql);
    /* Calls function for each row until it returns false. Columns are text or bytes; NULL has data NULL. */
    nl_status (*select)(store *s, const char *sql, bool (*function)(void *user, const nl_string *columns), void *user);
    const char *schema;
    const char *path; /* SQL for the text of the field with the quoted name %s */
} store_kind;

extern const store_kind sqlite_store, postgres_store;

/* The first member of each kind's store. */
struct store {
    const store_kind *kind;
    int64_t generation; /* number of commits, to notice concurrent loads */
};

/* Opens an archive by file name or URL. Returns NULL with the error set. */
store *store_open(const char *name, store_purpose purpose);
void store_close(store *s);

/* The other functions use the functions of the kind. */

/* Reads all places. The caller frees the array and the names. */
nl_status store_read_places(store *s, store_place **places, size_t *count);

/* Reads the numbers of all streams. */
nl_status store_read_streams(store *s, nl_streams *streams);

/* Begins a transaction for place; a new place gets an ID. */
nl_status store_begin(store *s, store_place *place);

/* Commits with the position of place and the numbers of the named streams. Fails, and rolls back, if another program
 * has committed meanwhile. */
nl_status store_commit(store *s, store_place *place, const nl_streams *streams, const unsigned char (*names)[16],
                       size_t size);

/* Appends text as an SQL literal; only quotes are special. */
void store_quote(nl_buffer *sql, nl_string text);

/* Appends text. */
void store_add(nl_buffer *sql, const char *format, ...) NL_PRINTF(2, 3);

#endif
