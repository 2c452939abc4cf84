/*
 * The process's folder of shared memory (shared.h), and files in it. Where there is no shared memory to be had, memory
 * without a name serves: everything works but recovery after a crash. All calls are thread-safe; none allocates from
 * the heap, so that a first event may come from a signal handler.
 */
#ifndef NETLOGGER_LOG_SESSION_H
#define NETLOGGER_LOG_SESSION_H

#include "log/shared.h"

typedef struct nl_mapping {
    char *memory; /* NULL: none */
    size_t size;
    int fd;        /* of another process's file; -1: none */
    bool named;    /* memory of a file in this process's folder, which outlives it */
    int error;     /* errno: why it is not */
    char name[32]; /* in the folder */
} nl_mapping;

/*
 * Makes the file NAME (printf style) of size bytes in the process's folder and maps it. The first reserved bytes are
 * backed by memory at once; the rest by nl_mapping_reserve. With repeat > 0 the bytes from there to the end are mapped
 * once more behind it. False with errno when it can't be.
 */
bool nl_mapping_make(nl_mapping *mapping, size_t size, size_t reserved, size_t repeat, const char *name, ...)
    NL_PRINTF(5, 6);

/* Maps size bytes of a file, the part from repeat > 0 on once more behind it. NULL with errno when it can't be. */
char *nl_mapping_map(int fd, size_t size, size_t repeat);

/* Backs the bytes [from, to) with memory, so that writing to them cannot fail. False with errno when there is none. */
bool nl_mapping_reserve(nl_mapping *mapping, size_t from, size_t to);

/* Unmaps it and removes its file. */
void nl_mapping_remove(nl_mapping *mapping);

/* Removes its file, but leaves the memory: threads may still be at it when the process ends. */
void nl_mapping_forget(nl_mapping *mapping);

/* Unmaps it and leaves its file to nlrecover, once nl_session_keep was called. */
void nl_mapping_leave(nl_mapping *mapping);

/* Fills in a file's first bytes. */
void nl_shared_head_set(nl_shared_head *head);

/* Something in the folder is left for nlrecover: nl_session_remove only lets go of it. */
void nl_session_keep(void);
bool nl_session_is_kept(void);

/* The path of the process's directory. Static storage. */
const char *nl_session_directory(void);

/* Removes the folder, if the process has one; what is mapped stays usable. */
void nl_session_remove(void);

/* In the child after fork: it gets a folder of its own when it needs one; the parent's stays. */
void nl_session_after_fork(void);

/* Where such folders are: $NETLOGGER_SHM or /dev/shm. */
const char *nl_session_parent(void);

#endif
