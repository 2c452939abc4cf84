#include "config.h"

#include "seal_key.h"

#include "base/write_some.h"
#include "base/error.h"
#include "file.h"
#include "program/program.h"

#include <openssl/crypto.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

static void format_key(const seal_key *key, char text[SEAL_KEY_TEXT_SIZE + 1])
{
    int length = snprintf(text, SEAL_KEY_TEXT_SIZE, "netlogger-seal-key %020" PRIu64 " ", key->index);
    OPENSSL_buf2hexstr_ex(text + length, 2 * SEAL_HASH_SIZE + 1, NULL, key->bytes, SEAL_HASH_SIZE, '\0');
    memcpy(text + SEAL_KEY_TEXT_SIZE - 1, "\n", 2);
}

static bool parse_key(char *text, seal_key *key)
{
    int at = 0;
    size_t length = 0;
    text[strcspn(text, "\n")] = '\0';
    return sscanf(text, "netlogger-seal-key %20" SCNu64 " %n", &key->index, &at) == 1 && at > 0 &&
           OPENSSL_hexstr2buf_ex(key->bytes, SEAL_HASH_SIZE, &length, text + at, '\0') == 1 && length == SEAL_HASH_SIZE;
}

/* Returns NL_FAILED if the file must not contain a key. */
static nl_status check_file(const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return nl_error_set(NL_ERROR_INVALID, "%s: not a regular file", path);
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return nl_error_set(NL_ERROR_PERMISSION, "%s: the key belongs to another user", path);
    return (status.st_mode & 077) == 0
               ? NL_OK
               : nl_error_set(NL_ERROR_PERMISSION, "%s: other users can access the key; run chmod 600", path);
}

nl_status seal_key_load(const char *path, seal_key *key)
{
    char text[SEAL_KEY_TEXT_SIZE + 1] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return nl_error_set_errno("open %s", path);
    nl_status status = check_file(path, fd);
    if (status == NL_OK && (read(fd, text, SEAL_KEY_TEXT_SIZE) <= 0 || !parse_key(text, key)))
        status = nl_error_set(NL_ERROR_INVALID, "%s: not a seal key", path);
    close(fd);
    OPENSSL_cleanse(text, sizeof text);
    return status;
}

/* Creates a new file that contains a key. Returns false and sets errno on failure. */
static bool write_key(const char *path, const seal_key *key, char text[SEAL_KEY_TEXT_SIZE + 1])
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    format_key(key, text);
    bool good = fd >= 0 && nl_write_all(fd, text, SEAL_KEY_TEXT_SIZE) && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* Overwrites an old key. The caller closes the file. */
static void erase_key(int fd)
{
    static const char zeros[SEAL_KEY_TEXT_SIZE];
    off_t size = lseek(fd, 0, SEEK_END); /* smaller than a key if the disk was full */
    size = size < SEAL_KEY_TEXT_SIZE ? size : SEAL_KEY_TEXT_SIZE;
    if (pwrite(fd, zeros, (size_t)size, 0) != size || fdatasync(fd) != 0)
        program_error("cannot erase an old seal key: %m");
}

nl_status seal_key_create(const char *path, char text[SEAL_KEY_TEXT_SIZE + 1])
{
    seal_key key = {0};
    if (getrandom(key.bytes, sizeof key.bytes, 0) != sizeof key.bytes)
        return nl_error_set_errno("cannot get random bytes");
    bool good = write_key(path, &key, text);
    OPENSSL_cleanse(&key, sizeof key);
    if (!good)
        return nl_error_set_errno("create %s", path);
    output_file_sync_directory(path);
    return NL_OK;
}

static int open_old(const char *path)
{
    return open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

nl_status seal_key_store(const char *path, const seal_key *key)
{
    char *beside = program_format("%s.new", path), text[SEAL_KEY_TEXT_SIZE + 1];
    int old = open_old(beside); /* a file that an interrupted attempt has left */
    if (old >= 0) {
        erase_key(old);
        close(old);
        unlink(beside);
    }
    old = open_old(path);
    bool good = write_key(beside, key, text) && rename(beside, path) == 0;
    nl_status status = good ? NL_OK : nl_error_set_errno("write %s", beside);
    OPENSSL_cleanse(text, sizeof text);
    if (good) {
        output_file_sync_directory(path);
        if (old >= 0)
            erase_key(old);
    }
    if (old >= 0)
        close(old);
    free(beside);
    return status;
}
