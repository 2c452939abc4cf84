/*
 * Reads and writes the file of a seal key, which contains one line: "netlogger-seal-key INDEX HEX". The first key of an
 * archive (index 0) verifies the archive. The collector's own file contains the key of the next seal.
 *
 * A key file must be a regular file and not a symbolic link. It must belong to the process's user or to root, and other
 * users must have no access. The module writes a new key to FILE.new and then renames this file, so that a crash leaves
 * the old or the new key. Then the module overwrites the bytes of the old key. Nevertheless, old keys may remain in
 * backups and in file systems that never overwrite data (btrfs, snapshots, flash memory). This module has no state.
 */
#ifndef NETLOGD_OUTPUT_SEAL_KEY_H
#define NETLOGD_OUTPUT_SEAL_KEY_H

#include "seal_chain.h"

enum { SEAL_KEY_TEXT_SIZE = 19 + 20 + 1 + 2 * SEAL_HASH_SIZE + 1 }; /* size of the line, with its newline */

/*
 * Creates a file, which must not exist, with a new random first key. Sets `text` to its line, with a NUL at the end. On
 * failure, sets the error and returns NL_FAILED.
 */
nl_status seal_key_create(const char *path, char text[SEAL_KEY_TEXT_SIZE + 1]);

/* Reads a key. On failure, sets the error and returns NL_FAILED. */
nl_status seal_key_load(const char *path, seal_key *key);

/* Replaces the key in a file, and syncs the file. On NL_FAILED, which sets the error, the file contains the old or
 * the new key, and the call can be repeated. */
nl_status seal_key_store(const char *path, const seal_key *key);

#endif
