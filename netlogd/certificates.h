/* Implements netlogctl certificates: makes a certificate authority and certificates for hosts. Not thread-safe. */
#ifndef NETLOGD_CERTIFICATES_H
#define NETLOGD_CERTIFICATES_H

#include <stddef.h>

/*
 * Makes a certificate authority in directory, unless it exists, and a key and a certificate for each of `count` hosts
 * (names or addresses). Renews certificates that are in the last third of their validity, and keeps the others. Prints
 * the result, and instructions for the use of the files. Returns PROGRAM_DONE. On failure, prints a message and returns
 * PROGRAM_PROBLEM; each file is then old or new, never partial.
 */
int certificates_make(const char *directory, char *const *hosts, size_t count);

#endif
