/*
 * The chain of seals that reveals tampering with an archive: keys, seals, and the format of NAME.seal.
 *
 * A seal is an entry of the seal file. It contains the SHA-256 of a range of bytes of one log file, and a tag. The tag
 * is the HMAC-SHA256 of the previous seal's tag and the seal, with a key that is used only once. A one-way function
 * computes the next key; the collector then erases the used key from its memory and its disk. An attacker who controls
 * the machine finds only the next key. With this key, the attacker can forge new seals but no older seals. netlogd
 * prints the first key when it creates the key; the user keeps it elsewhere. All keys can be computed from the first
 * key, so this key verifies all seals.
 *
 * The tags alone do not reveal that the last seals were removed. The head of the file therefore also has an end mark:
 * the number of seals, and a tag with the key of the next seal. When netlogd writes the next seal, it erases that key
 * and the mark, so an attacker cannot create a mark for fewer seals. The head has two places for marks. netlogd uses
 * them alternately, so that one mark is complete after a crash at any moment.
 *
 * systemd's journal uses a seekable key generator instead of a chain (FSPRG: Marson and Poettering, "Practical Secure
 * Logging: Seekable Sequential Key Generators", ESORICS 2013), which computes the key of seal N directly. A verifier
 * needs all keys in order anyway. A step of the chain takes 3 microseconds, so the keys for a year of seals, one every
 * 15 minutes, take 0.1 seconds (tests/unit/seal.c). The generator would need arithmetic modulo numbers of 1,536 bits,
 * keys of hundreds of bytes, and the assumption that factoring is hard. The chain assumes only SHA-256.
 *
 * A seal file begins with the following parts, with little-endian numbers (size in bytes, content):
 *    8  "NLSEAL01"
 *   80  2 end marks, each with the number of seals (8 bytes) and a tag (32 bytes)
 *
 * The seals follow. Each seal has the following parts:
 *    4  "NLS1"
 *    4  size of the seal with its tag, in bytes
 *    4  flags; 1: the log file is complete
 *    4  length of the pattern, in bytes
 *    8  index of the seal
 *    8  time of the seal, in nanoseconds since 1970
 *    8  number of the log file
 *   16  the range of sealed bytes [from, to) in the log file, 8 bytes each
 *   32  SHA-256 of this range
 *    -  pattern: the name of the log file, with {N} instead of its number
 *   32  tag
 *
 * The module has no state and is thread-safe. The program ends if libcrypto fails.
 */
#ifndef NETLOGD_OUTPUT_SEAL_CHAIN_H
#define NETLOGD_OUTPUT_SEAL_CHAIN_H

#include <netlogger.h>

#include <openssl/evp.h>
#include <stdio.h>

enum {
    SEAL_HASH_SIZE = 32,
    SEAL_NAME_MAX = 255,
    SEAL_MARK_SIZE = 8 + SEAL_HASH_SIZE,
    SEAL_HEAD_SIZE = 8 + 2 * SEAL_MARK_SIZE,
    SEAL_FIXED_SIZE = 56 + SEAL_HASH_SIZE, /* size of a seal without its pattern */
    SEAL_SIZE_MAX = SEAL_FIXED_SIZE + SEAL_NAME_MAX + SEAL_HASH_SIZE,
};

/* The key of the seal with number `index`. */
typedef struct seal_key {
    uint64_t index;
    unsigned char bytes[SEAL_HASH_SIZE];
} seal_key;

typedef struct seal_record {
    uint64_t index;
    int64_t time_ns;   /* time of sealing */
    uint64_t number;   /* number of the log file */
    uint64_t from, to; /* bytes [from, to) of the log file */
    bool ended;        /* the log file is complete */
    unsigned char digest[SEAL_HASH_SIZE];
    char pattern[SEAL_NAME_MAX + 1]; /* name of the log file, containing OUTPUT_NUMBER */
    unsigned char tag[SEAL_HASH_SIZE];
} seal_record;

/* The stored form of a seal. */
typedef struct seal_bytes {
    char data[SEAL_SIZE_MAX];
    size_t size;
} seal_bytes;

/* Replaces a key with the next key. */
void seal_key_evolve(seal_key *key);

/* Encodes and tags a seal. `previous_tag` is the tag of the previous seal. Sets record->tag. */
void seal_encode(seal_record *record, const seal_key *key, const unsigned char *previous_tag, seal_bytes *bytes);

/* Reads the seal at the file's position without checking its tag. Returns false if no complete seal is left, or if its
 * bytes are not a seal. */
bool seal_read(FILE *file, seal_record *record, seal_bytes *bytes);

/* Returns whether the tag of a seal is correct. */
bool seal_is_genuine(const seal_bytes *bytes, const seal_key *key, const unsigned char *previous_tag);

/* Encodes the end mark for key->index seals. seal_mark_offset returns its offset in the file. */
void seal_mark_encode(const seal_key *key, char mark[SEAL_MARK_SIZE]);
size_t seal_mark_offset(uint64_t count);

/* Begin a hash, add data to it, and get the digest of the data so far. Data can be added after getting a digest. */
void seal_hash_begin(EVP_MD_CTX *hash);
void seal_hash_add(EVP_MD_CTX *hash, const void *data, size_t size);
void seal_hash_get(const EVP_MD_CTX *hash, unsigned char digest[SEAL_HASH_SIZE]);

/* Adds the bytes [from, to) of a file to a hash. Returns false if the file cannot be read or is too short. */
bool seal_hash_range(EVP_MD_CTX *hash, int fd, uint64_t from, uint64_t to);

#endif
