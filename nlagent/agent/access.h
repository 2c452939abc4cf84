/*
 * Who may do what. A consumer is known by a token (the header "Authorization: Bearer TOKEN"), by the name in the
 * certificate that it has shown, or by the network that it comes from; what the access file says of any of these it
 * may, all together. Without an access file, whoever is on this machine may do everything, and others who may connect
 * (authenticated for by a certificate, or from an allowed network) may read.
 *
 *   token SECRET NAME RIGHT...            the token's bytes, and who that is in the log
 *   certificate GLOB RIGHT...             of the certificate's common name
 *   network ADDRESS[/BITS] RIGHT...
 *   loopback RIGHT...                     in place of all rights; "loopback none" has them show something too
 *
 * Rights: summaries (summaries, list, and finding), read (data of sensors that run, besides), start (have sensors
 * started, by asking or for no consumer in particular, besides), register (at a directory), collect (have this agent
 * collect from others), all.
 */
#ifndef NLAGENT_ACCESS_H
#define NLAGENT_ACCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

enum { RIGHT_SUMMARIES = 1, RIGHT_READ = 2, RIGHT_START = 4, RIGHT_REGISTER = 8, RIGHT_COLLECT = 16, RIGHT_ALL = 31 };
enum { ACCESS_NAME_SIZE = 80 };

typedef struct access access_list;

/* Reads a file; path NULL: as without one. NULL on failure. */
access_list *access_read(const char *path);
void access_free(access_list *a); /* NULL is allowed */

/* The rights of a consumer, and its name for the log. token and certificate may be NULL. */
unsigned access_rights(const access_list *a, const struct sockaddr *peer, const char *token, const char *certificate,
                       char name[ACCESS_NAME_SIZE]);

#endif
