/*
 * Creates the value indexes of the outputs' files (value_file.h) in one thread, which runs only while a processor is
 * idle (SCHED_IDLE). The thread reads the files again, usually from the page cache. Parts of a file that the thread has
 * not read yet have no index, and searches read them completely.
 *
 * file_index.c announces the files. Only the server's thread may call the functions. Only value_thread_stop waits for
 * the other thread. The two threads share a list without locks, because a thread of this priority could hold a lock for
 * a long time.
 */
#ifndef NETLOGD_OUTPUT_VALUE_THREAD_H
#define NETLOGD_OUTPUT_VALUE_THREAD_H

#include "value_file.h"

typedef struct value_job value_job;

/*
 * Announces a file. `size` is its size before netlogd appends lines in `format`. Returns NULL if the file gets no index
 * because of `choice`, or because too many files are waiting; the functions below accept NULL. Files with the same path
 * are indexed one after another.
 */
value_job *value_thread_add(const char *path, uint64_t inode, uint64_t size, nl_format format,
                            const value_choice *choice);

/* Reports that the time index of the file has all pieces up to the offset `end`. */
void value_thread_advance(value_job *job, uint64_t end);

/* Reports that the time index is complete. The thread frees the job. */
void value_thread_end(value_job *job);

/* Allows the thread to start when there is a file to index. Call it after netlogd has been confined. */
void value_thread_allow(void);

/*
 * Stops the thread, and frees all jobs, which must have ended. To complete the indexes, reads up to about 128 MiB of
 * the files.
 */
void value_thread_stop(void);

#endif
