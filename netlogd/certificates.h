/*
 * Implements netlogctl certificates: creates a certificate authority and certificates for hosts. Only one thread at a
 * time may call this module.
 */
#ifndef NETLOGD_CERTIFICATES_H
#define NETLOGD_CERTIFICATES_H

#include <stddef.h>

/*
 * Creates a certificate authority in `directory`, unless it exists, and a key and a certificate for each of `count`
 * hosts (names or addresses). Renews certificates that are in the last third of their validity, or that do not match
 * the key or the authority. Keeps other existing certificates. Prints the result and instructions. Returns
 * PROGRAM_DONE. On failure, prints a message and returns PROGRAM_PROBLEM. Each file then has either its previous
 * content or its complete new content.
 */
int certificates_make(const char *directory, char *const *hosts, size_t count);

#endif
