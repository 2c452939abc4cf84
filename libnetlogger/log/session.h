/*
 * The process's directory in shared memory (shared.h) and its files. If shared memory is not available, the module uses
 * anonymous memory, and events cannot be recovered after a crash. The functions do not use the heap, so that the first
 * event may come from a signal handler. All functions are thread-safe, but nl_session_keep, nl_session_is_kept and
 * nl_session_remove require that the registry is locked.
 */
#ifndef NETLOGGER_LOG_SESSION_H
#define NETLOGGER_LOG_SESSION_H

#include "log/shared.h"

typedef struct nl_mapping {
    char *memory;  /* NULL: nothing is mapped */
    size_t size;   /* bytes, including the second mapping */
    int fd;        /* descriptor of another process's file, or -1 */
    bool named;    /* the memory is a file in the process's directory, which outlives the process */
    int error;     /* errno if the memory is not named */
    char name[32]; /* file name in the directory */
} nl_mapping;

/*
 * Creates and maps the file NAME (printf format) of size bytes. Allocates memory for the first `reserved` bytes;
 * nl_mapping_reserve allocates memory for the rest. If repeat > 0, also maps the bytes from the offset `repeat` to the
 * end of the file again, directly after the first mapping. If the file cannot be created, maps anonymous memory and
 * sets mapping->error. Returns false with errno if no memory can be mapped.
 */
bool nl_mapping_make(nl_mapping *mapping, size_t size, size_t reserved, size_t repeat, const char *name, ...)
    NL_PRINTF(5, 6);

/*
 * Maps size bytes of a file or, if fd is -1, of new anonymous memory. If repeat > 0, also maps the bytes from the
 * offset `repeat` to the end a second time. Returns NULL with errno on failure.
 */
char *nl_mapping_map(int fd, size_t size, size_t repeat);

/*
 * Allocates memory for the bytes [from, to), so that writing to them cannot fail. Returns false with errno on failure.
 */
bool nl_mapping_reserve(nl_mapping *mapping, size_t from, size_t to);

/* Unmaps the memory and removes its file, if this process created one. */
void nl_mapping_remove(nl_mapping *mapping);

/* Removes the mapping's file, but keeps the memory, which threads may use until the process ends. */
void nl_mapping_forget(nl_mapping *mapping);

/* Unmaps the memory and leaves the file in the directory. Call nl_session_keep if nlrecover needs the file. */
void nl_mapping_leave(nl_mapping *mapping);

/* Fills in the header of a file. */
void nl_shared_head_set(nl_shared_head *head);

/* Keeps the directory for nlrecover: a later nl_session_remove closes the directory, but does not remove it. */
void nl_session_keep(void);
bool nl_session_is_kept(void);

/* Returns the path of the process's directory, in static storage. */
const char *nl_session_directory(void);

/* Removes the process's directory, if it exists, unless nl_session_keep was called. Mappings stay valid. */
void nl_session_remove(void);

/* Call this function in the child after fork. The child creates its own directory when necessary. */
void nl_session_after_fork(void);

/* Returns the path of the directory that contains all processes' directories, which is $NETLOGGER_SHM or /dev/shm. */
const char *nl_session_parent(void);

#endif
