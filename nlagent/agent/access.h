/*
 * The rights of clients. A token ("Authorization: Bearer TOKEN" header), the common name of a certificate, or a network
 * identifies a client. A client has the rights of all matching lines in the access file. Without an access file,
 * clients on this host have all rights, and other clients that may connect have the `read` right.
 *
 *   token SECRET NAME RIGHT...            NAME appears in the log
 *   certificate GLOB RIGHT...             GLOB matches the common name
 *   network ADDRESS[/BITS] RIGHT...
 *   loopback RIGHT...                     instead of all rights for this host
 *
 * The rights:
 * - summaries: reading summaries, and the operations List and Find
 * - read: `summaries`, and reading the data of running sensors
 * - start: `read`, and starting sensors
 * - register: registering with this directory
 * - collect: starting collections
 * - all, none
 *
 * Not thread-safe.
 */
#ifndef NLAGENT_ACCESS_H
#define NLAGENT_ACCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

enum { RIGHT_SUMMARIES = 1, RIGHT_READ = 2, RIGHT_START = 4, RIGHT_REGISTER = 8, RIGHT_COLLECT = 16, RIGHT_ALL = 31 };
enum { ACCESS_NAME_SIZE = 80 };

typedef struct access access_list;

/* Reads an access file. If `path` is NULL, returns the default rights. Returns NULL and sets the error on failure. */
access_list *access_read(const char *path);
void access_free(access_list *a); /* a may be NULL */

/* Returns the rights of a client (a set of RIGHT_ constants), and writes the client's name to `name`. `token` and
 * `certificate` may be NULL. */
unsigned access_rights(const access_list *a, const struct sockaddr *peer, const char *token, const char *certificate,
                       char name[ACCESS_NAME_SIZE]);

#endif
