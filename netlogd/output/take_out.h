/* Taking damaged places out of a file. */
#ifndef NETLOGD_OUTPUT_TAKE_OUT_H
#define NETLOGD_OUTPUT_TAKE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Places of a file, in order, none within another. {0} are none. */
typedef struct regions {
    struct region {
        uint64_t from, to; /* bytes [from, to) */
        bool line;         /* and the end of line behind them */
    } * places;
    size_t count, capacity;
} regions;

/* Adds a place that does not begin before the latest one; where both overlap they become one. */
void regions_add(regions *r, uint64_t from, uint64_t to, bool line);

/* Whether the latest place goes on to at. */
bool regions_reach(const regions *r, uint64_t at);

uint64_t regions_bytes(const regions *r);
void regions_free(regions *r);

/*
 * Moves those places' bytes from the file to PATH.damaged, which is appended to. The rest is written beside and takes
 * the file's name when it is on the disk, so that a crash leaves one or the other. False after having said on standard
 * error why not.
 */
bool take_out(const char *path, const regions *r);

/* Gives what is to stand for a file, or beside it, that file's owner and permissions: root may repair what netlogd's
 * own user goes on with. Who may not give a file away is its owner already. False with errno. */
bool make_alike(int fd, const struct stat *as);

#endif
