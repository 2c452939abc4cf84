/*
 * Descriptors that a program may have closed behind the library's back: daemons close all they find, and the numbers
 * are others' from then on. So what a descriptor was when it was opened is kept, and compared before it is used.
 */
#ifndef NETLOGGER_BASE_DESCRIPTOR_H
#define NETLOGGER_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct nl_identity {
    dev_t device;
    ino_t inode;
} nl_identity;

/* What fd is now; errno is left alone when it is none. */
static inline nl_identity nl_identity_of(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? (nl_identity){status.st_dev, status.st_ino} : (nl_identity){0};
}

/* Whether fd is still that. */
static inline bool nl_identity_holds(const nl_identity *identity, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_dev == identity->device && status.st_ino == identity->inode;
}

/* Closes fd if it is still that. False when closing fails. */
static inline bool nl_identity_close(const nl_identity *identity, int fd)
{
    return !nl_identity_holds(identity, fd) || close(fd) == 0;
}

#endif
