/*
 * Keeps the requests that match keep_where= when keep= or keep_size= delete the files of an archive.
 *
 * Before retention.h deletes a file, a thread of low priority copies the records of these requests to a kept file
 * (output_options.kept_path), which has the same number and format. selection.h finds the records. For each file, the
 * thread writes the kept file, and then stores the decisions about later files (kept_window.h). After that, the file is
 * finished, and only then may it be deleted. If netlogd is killed before the file is finished, the next netlogd writes
 * the kept file again, under the same name. If netlogd is killed afterwards, the stored decisions show that the file is
 * finished. Each record is therefore in an old file or in a kept file. A record is in both files only until the old
 * file is deleted.
 *
 * Files are finished in the order of their numbers. The server's thread calls the functions, which do not wait, except
 * keeper_free. The two threads share only atomic variables and a semaphore.
 */
#ifndef NETLOGD_OUTPUT_KEEPER_H
#define NETLOGD_OUTPUT_KEEPER_H

#include "options.h"

typedef struct keeper keeper;

typedef struct keeper_counts {
    uint64_t requests; /* number of kept requests */
    uint64_t records;  /* number of records in kept files */
} keeper_counts;

/*
 * Starts the thread for the files of an output with keep_where=. The caller keeps the options. `memory_max` is the
 * maximum memory for open requests in bytes. On failure, sets the error and returns NULL.
 */
keeper *keeper_new(const output_options *options, size_t memory_max);

/* Stops the thread, which may be in the middle of a file; this file is then not finished. Waits for a short time. NULL
 * is allowed. */
void keeper_free(keeper *k);

/* Makes the thread finish all files with numbers up to `number`. `newest` is the number of the newest file. */
void keeper_request(keeper *k, uint64_t number, uint64_t newest);

/* Returns the number of the latest finished file; 0 if no file is finished. */
uint64_t keeper_finished(const keeper *k);

/*
 * If the thread has failed to finish a file since the latest call, returns the reason. Otherwise, returns NULL. The
 * caller frees the text. After a failure, the thread tries again at the next keeper_request.
 */
char *keeper_take_failure(keeper *k);

/* Returns whether keeper_take_failure would return a reason. */
bool keeper_has_failed(const keeper *k);

keeper_counts keeper_count(const keeper *k);

#endif
