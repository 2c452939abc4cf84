/*
 * A store kept in a file beside its log (LOG.nlv-index, or in $XDG_CACHE_HOME/netlogger where that can't be written),
 * so that a large log is there at once when it is opened again. The file is mapped: what is not looked at is not read.
 *
 * It is used when the log is the same file and has at most grown since: then reading goes on behind what the index
 * knows. Otherwise, and when it is damaged or of another version of this program, it is as if there was none, and it is
 * written anew. It is written whole under another name first, so that none is ever found half written.
 */
#ifndef NLV_INDEX_H
#define NLV_INDEX_H

#include "analysis/drawing.h"
#include "model/store.h"
#include "model/text_file.h"

/*
 * The store of the log at path, its text number 0; NULL when there is none that can be used. wanted is what has to be
 * drawn; NULL: what was inferred. *d is the drawing, the caller's; *at how much of the log is in it.
 */
store *index_read(const char *path, const text_file *text, const drawing *wanted, drawing **d, uint64_t *at);

/* Whether all of it is as it was written: for afterwards, as this reads the whole file. A store not from one is. */
bool index_is_sound(const store *s);

/* Writes it; that it can't be is not said, as only time is lost. Returns whether it was. */
bool index_write(const store *s, const drawing *d, bool inferred, const char *path, const text_file *text, uint64_t at);

/* Removes it, wherever it is. */
void index_remove(const char *path);

#endif
