/*
 * Selects the records of an archive's old files that keep_where= keeps.
 *
 * The module reads whole files in the order of their numbers, and builds requests from their records (assembler.h). A
 * file is decided when all its requests are over. Therefore, the module usually also reads the following file. It does
 * not read the newest file, to which netlogd still writes. A request is over as assembler.h describes, with
 * SELECTION_PAUSE_S as the maximum pause.
 *
 * A request that matches is kept completely. In the following cases, it is unknown whether a request matches, and the
 * module keeps its records:
 * - The request is too large: it uses more than an eighth of the memory.
 * - The request is still open after the module has read SELECTION_AHEAD_MAX bytes of later files, or all later files.
 *
 * In these cases, all later requests with the same ID are also kept, so that the request is whole.
 *
 * If the records of all open requests do not fit in memory, the requests that have been idle longest count as over.
 * Later records of such a request form another request.
 *
 * Memory is bounded: by memory_max for open requests, and by a few bits for each record of the files that are read. The
 * decisions are in a window (kept_window.h). Only one thread at a time may use a selection.
 */
#ifndef NETLOGD_OUTPUT_SELECTION_H
#define NETLOGD_OUTPUT_SELECTION_H

#include "kept_window.h"
#include "requests/request_filter.h"

#include <stdatomic.h>

enum { SELECTION_PAUSE_S = 600, SELECTION_AHEAD_MAX = 1 << 30 };

typedef struct selection selection;

typedef enum selection_state {
    SELECTION_DECIDED,
    SELECTION_WAITS,   /* requests are open, and the next file is the newest file */
    SELECTION_STOPPED, /* `stop` is true */
} selection_state;

/*
 * Creates a selection for the files of an output with keep_where=. The caller keeps the options, and sets *stop to end
 * long calls early. `memory_max` is in bytes.
 */
selection *selection_new(const output_options *options, size_t memory_max, const atomic_bool *stop);
void selection_free(selection *s); /* NULL is allowed */

/* Returns the decisions so far. The selection owns the window. */
kept_window *selection_get_window(selection *s);

/*
 * Decides about the records of the file with this number, which is lower than `newest`, the number of the newest file.
 * Call the function with ascending numbers. A file that does not exist has no records.
 */
selection_state selection_decide(selection *s, uint64_t number, uint64_t newest);

/* Returns whether a decided file has records that are kept. */
bool selection_keeps_any(selection *s, uint64_t number);

/*
 * Returns whether a record of a decided file is kept; `index` counts the records of the file. If the record's request
 * is still open, the record and all later records of the request are kept.
 */
bool selection_keeps(selection *s, uint64_t number, uint64_t index, const nl_record *record);

/* Returns the number of requests that are kept, of all files that were read. Single records count as requests. */
uint64_t selection_count_requests(const selection *s);

/* Opens a file of the archive for reading. On failure, sets the error and returns NULL. */
nl_reader *selection_open_file(const char *name);

#endif
