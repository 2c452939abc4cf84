/*
 * Where an archive's records are kept: a database with the tables that doc/archive.md tells of. One kind of database a
 * file: SQLite (a file of its own) and PostgreSQL (a server).
 *
 * All that a load changes goes in by transactions: the records, how far each source was read, and which numbers of each
 * stream have come. So it is the same whether the program ends well or is killed: what was read and what is there
 * belong together. Every function that fails sets the error. One thread.
 */
#ifndef NLTOOLS_ARCHIVE_STORE_H
#define NLTOOLS_ARCHIVE_STORE_H

#include "archive/row.h"

#include <netlogger.h>

enum { STORE_VERSION = 1, STORE_HEAD_SIZE = 4096 };

/* How far a source was read. A file is known by its first bytes, whatever it is called; a collector by its name. */
typedef struct store_place {
    int64_t id; /* 0: not in the database yet */
    char *name;
    uint64_t head_size;       /* bytes that it is known by, STORE_HEAD_SIZE unless it was shorter; 0: none */
    uint64_t head;            /* a hash of them */
    uint64_t position, lines; /* read: bytes, after decompression, and lines in them */
    int64_t latest_ns;        /* the latest time in it */
} store_place;

typedef enum store_purpose { STORE_READ, STORE_LOAD } store_purpose;

typedef struct store store;

typedef struct store_kind {
    const char *name;
    /* where is a file or a connection string. STORE_LOAD makes the tables where there are none. */
    store *(*open)(const char *where, store_purpose purpose);
    void (*close)(store *s);
    /* For loading. Whatever comes between begin and commit is there as a whole, or not at all. */
    nl_status (*begin)(store *s);
    nl_status (*put)(store *s, const row *r, int64_t source);
    nl_status (*end_put)(store *s); /* before anything else goes into the transaction */
    nl_status (*commit)(store *s);
    void (*undo)(store *s);
    /* Statements without results. */
    nl_status (*run)(store *s, const char *sql);
    /* Rows, one after another; columns are text, or bytes, NULL data where there is nothing. function returns whether
     * more are wanted. */
    nl_status (*select)(store *s, const char *sql, bool (*function)(void *user, const nl_string *columns), void *user);
    const char *schema;
    const char *path; /* how a field of the name %s, quoted for it, is taken from fields as text */
} store_kind;

extern const store_kind sqlite_store, postgres_store;

/* The first member of each kind's own. */
struct store {
    const store_kind *kind;
    int64_t generation; /* of commits: another program that loads at the same time is noticed by it */
};

/* Opens an archive: a file's name, or postgresql://... NULL with the reason. */
store *store_open(const char *name, store_purpose purpose);
void store_close(store *s);

/* Everything else is made of the kind's functions (store.c). */

/* The places that are known, an array of *count, its names too the caller's to free. */
nl_status store_read_places(store *s, store_place **places, size_t *count);

/* What is known of streams, into streams. */
nl_status store_read_streams(store *s, nl_streams *streams);

/* Begins a transaction in which place, which may be new, is loaded from: it has an id after that. */
nl_status store_begin(store *s, store_place *place);

/* Ends it: with how far place was read, and what the streams of those names, size of them, go on with. NL_FAILED when
 * another program has loaded meanwhile, too; then nothing of the transaction is there. */
nl_status store_commit(store *s, store_place *place, const nl_streams *streams, const unsigned char (*names)[16],
                       size_t size);

/* Appends text as a literal of SQL, in which nothing but a quote means anything: a kind of database sees to that. */
void store_quote(nl_buffer *sql, nl_string text);

/* Appends text. */
void store_add(nl_buffer *sql, const char *format, ...) NL_PRINTF(2, 3);

#endif
