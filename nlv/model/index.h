/*
 * A store kept in a file beside its log (LOG.nlv-index, or in $XDG_CACHE_HOME/netlogger where that can't be written),
 * so that a large log is there at once when it is opened again. The file is mapped: what is not looked at is not read.
 *
 * What a picture of the whole log is made of lies together at its start, whatever lies between far behind.
 *
 * It is used when the log has at most grown since: then reading goes on behind what the index knows. A file of the same
 * size and times is the same. Otherwise both its ends and some pieces between are looked at at once, and all others
 * while there is a picture already (prints.h): a log that was changed in its middle is read anew, and so is one whose
 * index is damaged or of another version of this program. It is written whole under another name first, so that none is
 * ever found half written.
 */
#ifndef NLV_INDEX_H
#define NLV_INDEX_H

#include "requests/drawing.h"
#include "model/log_file.h"
#include "model/prints.h"
#include "model/store.h"

#include <stdatomic.h>

/* What was found; all of it is the caller's. */
typedef struct index_found {
    store *store; /* its file is number 0 */
    drawing *drawing;
    uint64_t at;    /* how much of the log is in it */
    prints prints;  /* of that */
    GArray *blocks; /* log_block: those of that, when the log is one of blocks */
    bool is_sure;   /* that the log is what it was; otherwise its prints are to be compared */
} index_found;

/* The index of the log at path; false when there is none that can be used. wanted is what has to be drawn; NULL: what
 * was inferred. */
bool index_read(const char *path, const log_file *file, const drawing *wanted, index_found *found);

/* How far it was looked whether all of an index is as it was written. All zero at first. */
typedef struct index_position {
    uint64_t section, done, hash;
} index_position;

typedef enum index_state { INDEX_MORE, INDEX_SOUND, INDEX_DAMAGED } index_state;

/* Reads so many bytes more of the file that a store is borrowed from. A store not from one is sound. */
index_state index_check(const store *s, index_position *at, uint64_t bytes);

/* Notes that the log is, now, what the index is of, so that it need not be compared again. */
void index_confirm(const store *s, const char *path, const log_file *file);

/*
 * Writes it; prints are of the log up to at. That it can't be is not said, as only time is lost. Returns whether it
 * was: not either when *stopping became true meanwhile.
 */
bool index_write(const store *s, const drawing *d, bool inferred, const char *path, const log_file *file, uint64_t at,
                 const prints *p, const atomic_bool *stopping);

/* Removes it, wherever it is. */
void index_remove(const char *path);

#endif
