/*
 * The file of a seal key: one line, "netlogger-seal-key INDEX HEX". The first key of an archive (index 0) verifies it;
 * the collector's own file holds the key of the next seal.
 *
 * A key file is a plain file of the user that the program runs as (or root's), which no other user may read or write.
 * Links are not followed. A key is replaced under a second name, FILE.new, which is then renamed, so that a crash
 * leaves one or the other; the bytes of the old one are overwritten after that. A file system that never overwrites
 * (btrfs, snapshots, flash memory) and backups of the file keep old keys all the same.
 */
#ifndef NETLOGD_OUTPUT_SEAL_KEY_H
#define NETLOGD_OUTPUT_SEAL_KEY_H

#include "seal_chain.h"

enum { SEAL_KEY_TEXT_SIZE = 19 + 20 + 1 + 2 * SEAL_HASH_SIZE + 1 }; /* of the line, with its newline */

/* Creates a file with a new random first key, which must not exist. text becomes the line, ended by a 0 byte. NL_FAILED
 * with the reason in nl_error_message(). */
nl_status seal_key_create(const char *path, char text[SEAL_KEY_TEXT_SIZE + 1]);

/* Reads a key. NL_FAILED with the reason in nl_error_message(). */
nl_status seal_key_load(const char *path, seal_key *key);

/* Replaces the key in a file; it is on the disk then. NL_FAILED with the reason in nl_error_message(): the file has the
 * old key, or the new one, and it can be tried again. */
nl_status seal_key_store(const char *path, const seal_key *key);

#endif
