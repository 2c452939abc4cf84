/*
 * Detects descriptors that the program has closed. A program that becomes a daemon may close all open descriptors, and
 * the kernel then reuses their numbers. The library stores the identity of each file that it opens, and compares it
 * before each use of the descriptor.
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

/* Returns the identity of an open file; zeros if fd is not open. Keeps errno if fd is negative. */
static inline nl_identity nl_identity_of(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? (nl_identity){status.st_dev, status.st_ino} : (nl_identity){0};
}

/* Returns whether fd refers to the file with this identity. */
static inline bool nl_identity_holds(const nl_identity *identity, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_dev == identity->device && status.st_ino == identity->inode;
}

/* Closes fd if it refers to the file with this identity. Returns false if close(2) fails. */
static inline bool nl_identity_close(const nl_identity *identity, int fd)
{
    return !nl_identity_holds(identity, fd) || close(fd) == 0;
}

#endif
