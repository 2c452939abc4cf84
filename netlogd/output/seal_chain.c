#include "config.h"

#include "seal_chain.h"

#include "program/program.h"
#include "record/varint.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    AT_SIZE = 4,
    AT_FLAGS = 8,
    AT_PATTERN_LENGTH = 12,
    AT_INDEX = 16,
    AT_TIME = 24,
    AT_NUMBER = 32,
    AT_FROM = 40,
    AT_TO = 48,
    AT_DIGEST = 56,
    ENDED = 1,
};

/* Computes HMAC-SHA256 over the purpose of the tag, which is a word, and `data`. */
static void tag_data(const seal_key *key, const char *purpose, const void *data, size_t size,
                     unsigned char tag[SEAL_HASH_SIZE])
{
    unsigned char text[16 + SEAL_HASH_SIZE + SEAL_SIZE_MAX];
    size_t length = strlen(purpose) + 1;
    memcpy(text, purpose, length);
    memcpy(text + length, data, size);
    if (HMAC(EVP_sha256(), key->bytes, SEAL_HASH_SIZE, text, length + size, tag, NULL) == NULL)
        program_fail(PROGRAM_PROBLEM, "libcrypto: cannot compute HMAC-SHA256");
}

void seal_key_evolve(seal_key *key)
{
    unsigned char next[SEAL_HASH_SIZE];
    tag_data(key, "key", "", 0, next);
    memcpy(key->bytes, next, sizeof next);
    OPENSSL_cleanse(next, sizeof next);
    key->index++;
}

static void tag_seal(const seal_bytes *bytes, const seal_key *key, const unsigned char *previous_tag,
                     unsigned char tag[SEAL_HASH_SIZE])
{
    char data[SEAL_HASH_SIZE + SEAL_SIZE_MAX];
    size_t size = bytes->size - SEAL_HASH_SIZE;
    memcpy(data, previous_tag, SEAL_HASH_SIZE);
    memcpy(data + SEAL_HASH_SIZE, bytes->data, size);
    tag_data(key, "seal", data, SEAL_HASH_SIZE + size, tag);
}

void seal_encode(seal_record *record, const seal_key *key, const unsigned char *previous_tag, seal_bytes *bytes)
{
    char *at = bytes->data;
    size_t length = strlen(record->pattern);
    record->index = key->index;
    bytes->size = SEAL_FIXED_SIZE + length + SEAL_HASH_SIZE;
    memcpy(at, "NLS1", 4);
    nl_le32_put(at + AT_SIZE, (uint32_t)bytes->size);
    nl_le32_put(at + AT_FLAGS, record->ended ? ENDED : 0);
    nl_le32_put(at + AT_PATTERN_LENGTH, (uint32_t)length);
    nl_le64_put(at + AT_INDEX, record->index);
    nl_le64_put(at + AT_TIME, (uint64_t)record->time_ns);
    nl_le64_put(at + AT_NUMBER, record->number);
    nl_le64_put(at + AT_FROM, record->from);
    nl_le64_put(at + AT_TO, record->to);
    memcpy(at + AT_DIGEST, record->digest, SEAL_HASH_SIZE);
    memcpy(at + SEAL_FIXED_SIZE, record->pattern, length);
    tag_seal(bytes, key, previous_tag, record->tag);
    memcpy(at + SEAL_FIXED_SIZE + length, record->tag, SEAL_HASH_SIZE);
}

bool seal_read(FILE *file, seal_record *record, seal_bytes *bytes)
{
    char *at = bytes->data;
    if (fread(at, 1, SEAL_FIXED_SIZE, file) != SEAL_FIXED_SIZE || memcmp(at, "NLS1", 4) != 0)
        return false;
    size_t length = nl_le32_get(at + AT_PATTERN_LENGTH);
    bytes->size = nl_le32_get(at + AT_SIZE);
    if (length > SEAL_NAME_MAX || bytes->size != SEAL_FIXED_SIZE + length + SEAL_HASH_SIZE)
        return false;
    size_t rest = bytes->size - SEAL_FIXED_SIZE;
    if (fread(at + SEAL_FIXED_SIZE, 1, rest, file) != rest || memchr(at + SEAL_FIXED_SIZE, '/', length) != NULL)
        return false;
    *record = (seal_record){.index = nl_le64_get(at + AT_INDEX),
                            .time_ns = (int64_t)nl_le64_get(at + AT_TIME),
                            .number = nl_le64_get(at + AT_NUMBER),
                            .from = nl_le64_get(at + AT_FROM),
                            .to = nl_le64_get(at + AT_TO),
                            .ended = (nl_le32_get(at + AT_FLAGS) & ENDED) != 0};
    memcpy(record->digest, at + AT_DIGEST, SEAL_HASH_SIZE);
    memcpy(record->pattern, at + SEAL_FIXED_SIZE, length);
    memcpy(record->tag, at + SEAL_FIXED_SIZE + length, SEAL_HASH_SIZE);
    return true;
}

bool seal_is_genuine(const seal_bytes *bytes, const seal_key *key, const unsigned char *previous_tag)
{
    unsigned char tag[SEAL_HASH_SIZE];
    tag_seal(bytes, key, previous_tag, tag);
    return CRYPTO_memcmp(tag, bytes->data + bytes->size - SEAL_HASH_SIZE, SEAL_HASH_SIZE) == 0;
}

void seal_mark_encode(const seal_key *key, char mark[SEAL_MARK_SIZE])
{
    nl_le64_put(mark, key->index);
    tag_data(key, "end", mark, 8, (unsigned char *)mark + 8);
}

size_t seal_mark_offset(uint64_t count)
{
    return SEAL_HEAD_SIZE - (count % 2 + 1) * SEAL_MARK_SIZE;
}

void seal_hash_begin(EVP_MD_CTX *hash)
{
    if (EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
        program_fail(PROGRAM_PROBLEM, "libcrypto: cannot compute SHA-256");
}

void seal_hash_add(EVP_MD_CTX *hash, const void *data, size_t size)
{
    if (EVP_DigestUpdate(hash, data, size) != 1)
        program_fail(PROGRAM_PROBLEM, "libcrypto: cannot compute SHA-256");
}

void seal_hash_get(const EVP_MD_CTX *hash, unsigned char digest[SEAL_HASH_SIZE])
{
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    if (copy == NULL || EVP_MD_CTX_copy_ex(copy, hash) != 1 || EVP_DigestFinal_ex(copy, digest, NULL) != 1)
        program_fail(PROGRAM_PROBLEM, "libcrypto: cannot compute SHA-256");
    EVP_MD_CTX_free(copy);
}

bool seal_hash_range(EVP_MD_CTX *hash, int fd, uint64_t from, uint64_t to)
{
    char piece[32 << 10];
    while (from < to) {
        size_t length = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        ssize_t got = pread(fd, piece, length, (off_t)from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        seal_hash_add(hash, piece, (size_t)got);
        from += (uint64_t)got;
    }
    return true;
}
