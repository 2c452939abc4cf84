/*
 * The file of a seal key: one line, "netlogger-seal-key INDEX HEX". The first key of an archive (index 0) verifies it;
 * the collector's own file holds the key of the next seal.
 *
 * A key file must be a regular file of the process's user or of root, without access for other users, and not a
 * symbolic link. A new key is written to FILE.new, which is renamed, so that a crash leaves the old or the new key;
 * then the bytes of the old key are overwritten. File systems that never overwrite (btrfs, snapshots, flash memory) and
 * backups keep old keys nevertheless. No state.
 */
#ifndef NETLOGD_OUTPUT_SEAL_KEY_H
#define NETLOGD_OUTPUT_SEAL_KEY_H

#include "seal_chain.h"

enum { SEAL_KEY_TEXT_SIZE = 19 + 20 + 1 + 2 * SEAL_HASH_SIZE + 1 }; /* of the line, with its newline */

/*
 * Creates a file, which must not exist, with a new random first key. text becomes its line, with a NUL. Returns
 * NL_FAILED after setting the error.
 */
nl_status seal_key_create(const char *path, char text[SEAL_KEY_TEXT_SIZE + 1]);

/* Reads a key. Returns NL_FAILED after setting the error. */
nl_status seal_key_load(const char *path, seal_key *key);

/* Replaces the key in a file, and syncs it. On NL_FAILED, after setting the error, the file has the old or the new key,
 * and the call can be repeated. */
nl_status seal_key_store(const char *path, const seal_key *key);

#endif
