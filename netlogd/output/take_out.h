/* Removing damaged regions from a file. No state. */
#ifndef NETLOGD_OUTPUT_TAKE_OUT_H
#define NETLOGD_OUTPUT_TAKE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Regions of a file, in order and not adjacent. {0} is empty. */
typedef struct regions {
    struct region {
        uint64_t from, to; /* bytes [from, to) */
        bool line;         /* and the following newline */
    } * places;
    size_t count, capacity;
} regions;

/* Adds a region that does not begin before the latest one; regions that overlap are joined. */
void regions_add(regions *r, uint64_t from, uint64_t to, bool line);

/* Returns whether the latest region extends to `at`. */
bool regions_reach(const regions *r, uint64_t at);

uint64_t regions_bytes(const regions *r);
void regions_free(regions *r);

/*
 * Moves the regions to the end of PATH.damaged. The rest is written to another file, synced, and renamed to path, so
 * that a crash leaves the old or the new file. Returns false after reporting an error.
 */
bool take_out(const char *path, const regions *r);

/*
 * Gives a new file the owner and permissions of another, because root may repair files of netlogd's user. (A user who
 * may not change the owner already owns the file.) Returns false with errno on failure.
 */
bool make_alike(int fd, const struct stat *as);

#endif
