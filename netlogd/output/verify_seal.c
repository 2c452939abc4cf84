#include "config.h"

#include "verify_seal.h"

#include "base/text.h"
#include "base/memory.h"
#include "base/time_internal.h"
#include "file.h"
#include "program/program.h"

#include <openssl/crypto.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A log file that a seal names. */
typedef struct sealed_file {
    char *name;
    int fd;             /* -1: the file cannot be read */
    int error;          /* reason (errno) why the file cannot be read */
    seal_record latest; /* the file's last seal */
    int64_t first_ns;   /* time of the file's first seal */
    bool bad;           /* a sealed range of the file was changed */
} sealed_file;

typedef struct seal_check {
    const char *directory;
    char *name; /* name of the seal file */
    int64_t since_ns;
    bool tampered;
    uint64_t count, bytes; /* number of genuine seals, and number of bytes that they prove */
    int64_t first_ns, last_ns;
    sealed_file *files; /* in the order of the seals */
    size_t file_count;
    EVP_MD_CTX *hash;
} seal_check;

static void report_tampering(seal_check *c, const char *name, const char *format, ...) NL_PRINTF(3, 4);
static void report_tampering(seal_check *c, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s: ", name);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    c->tampered = true;
}

/* ---- log files ---- */

/* Returns the file that a seal names: the file of the previous seal, or a new file. */
static sealed_file *find_file(seal_check *c, const seal_record *record)
{
    sealed_file *file = c->file_count > 0 ? &c->files[c->file_count - 1] : NULL;
    if (file != NULL && file->latest.number == record->number && strcmp(file->latest.pattern, record->pattern) == 0)
        return file;
    if (file != NULL && file->fd >= 0)
        close(file->fd);
    c->files = nl_memory_check(reallocarray(c->files, c->file_count + 1, sizeof *c->files));
    output_options files = {.numbered = true, .path = program_format("%s/%s", c->directory, record->pattern)};
    file = &c->files[c->file_count++];
    *file = (sealed_file){.name = output_file_name(&files, record->number), .first_ns = record->time_ns};
    file->fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    file->error = file->fd < 0 ? errno : 0;
    free(files.path);
    return file;
}

/* Compares a range of a log file with a genuine seal. */
static void check_range(seal_check *c, const seal_record *record)
{
    sealed_file *file = find_file(c, record);
    unsigned char digest[SEAL_HASH_SIZE];
    file->latest = *record;
    if (file->fd < 0)
        return;
    seal_hash_begin(c->hash);
    bool whole = seal_hash_range(c->hash, file->fd, record->from, record->to);
    seal_hash_get(c->hash, digest);
    if (whole && memcmp(digest, record->digest, sizeof digest) == 0) {
        c->bytes += record->to - record->from;
        return;
    }
    char sealed[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(record->time_ns, sealed);
    report_tampering(c, file->name, "bytes %" PRIu64 " to %" PRIu64 " are %s; they were sealed at %s", record->from,
                     record->to, whole ? "altered" : "cut off", sealed);
    file->bad = true;
}

/* Reports the result for a whole file. `last` is true if netlogd may still be writing to the file. */
static void check_file(seal_check *c, sealed_file *file, bool last)
{
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    struct stat status;
    nl_time_format_iso(file->first_ns, from);
    nl_time_format_iso(file->latest.time_ns, to);
    bool there = file->error == 0 && stat(file->name, &status) == 0;
    uint64_t sealed = file->latest.to, size = there ? (uint64_t)status.st_size : 0;
    if (file->error == ENOENT && (sealed == 0 || file->latest.time_ns < c->since_ns))
        printf("%s: note: removed; it had %" PRIu64 " byte%s, sealed from %s to %s\n", file->name, sealed,
               nl_plural(sealed), from, to);
    else if (!there)
        report_tampering(c, file->name, "%s; it had %" PRIu64 " byte%s, sealed from %s to %s",
                         file->error == ENOENT ? "missing" : strerror(file->error), sealed, nl_plural(sealed), from,
                         to);
    else if (size > sealed && last && !file->latest.ended)
        printf("%s: note: not sealed yet: the last %" PRIu64 " byte%s\n", file->name, size - sealed,
               nl_plural(size - sealed));
    else if (size > sealed)
        report_tampering(c, file->name, "%" PRIu64 " byte%s added after the last seal", size - sealed,
                         nl_plural(size - sealed));
    if (there && !file->bad && sealed > 0)
        printf("%s: sealed: %" PRIu64 " byte%s, from %s to %s\n", file->name, sealed, nl_plural(sealed), from, to);
}

static bool is_sealed(const seal_check *c, const char *name)
{
    for (size_t i = 0; i < c->file_count; i++)
        if (strcmp(c->files[i].name, name) == 0)
            return true;
    return false;
}

/* Reports a log file that no seal names. If the file is older than the first seal, prints only a note. */
static void check_other(seal_check *c, const char *name)
{
    if (is_sealed(c, name))
        return;
    if (c->file_count > 0 && c->files[0].latest.number > 1 && strverscmp(name, c->files[0].name) < 0)
        printf("%s: note: not sealed; it is older than the first seal\n", name);
    else
        report_tampering(c, name, "not sealed; it was added to the archive");
}

/* ---- seals ---- */

static void check_seal(seal_check *c, const seal_record *record)
{
    c->first_ns = c->count++ == 0 ? record->time_ns : c->first_ns;
    c->last_ns = record->time_ns;
    if (strstr(record->pattern, OUTPUT_NUMBER) != NULL)
        check_range(c, record);
}

/* Returns whether the end mark is for key->index seals. */
static bool has_mark(const char *head, const seal_key *key)
{
    char mark[SEAL_MARK_SIZE];
    seal_mark_encode(key, mark);
    return memcmp(head + seal_mark_offset(key->index), mark, sizeof mark) == 0;
}

/* Checks the seals in a seal file in their order. */
static void check_chain(seal_check *c, FILE *file, seal_key key)
{
    unsigned char previous_tag[SEAL_HASH_SIZE] = {0};
    char head[SEAL_HEAD_SIZE];
    struct stat status;
    seal_record record;
    seal_bytes bytes;
    uint64_t marked = UINT64_MAX; /* number of seals according to the end mark */
    if (fread(head, 1, sizeof head, file) != sizeof head || memcmp(head, "NLSEAL01", 8) != 0 ||
        fstat(fileno(file), &status) != 0) {
        report_tampering(c, c->name, "not a seal file");
        return;
    }
    for (; marked == UINT64_MAX || key.index <= marked; seal_key_evolve(&key)) {
        off_t at = ftello(file);
        if (has_mark(head, &key))
            marked = key.index;
        if (at >= status.st_size || !seal_read(file, &record, &bytes))
            break;
        if (record.index == key.index && seal_is_genuine(&bytes, &key, previous_tag))
            check_seal(c, &record);
        else if (key.index == 0)
            break;                     /* the key belongs to another archive */
        else if (marked == UINT64_MAX) /* a crash may have removed a seal after the mark was written */
            report_tampering(c, c->name, "seal %" PRIu64 " at byte %" PRIu64 " was altered", key.index + 1,
                             (uint64_t)at);
        memcpy(previous_tag, record.tag, sizeof previous_tag);
    }
    if (marked == UINT64_MAX)
        report_tampering(c, c->name, "seal %" PRIu64 " is missing or damaged%s", key.index + 1,
                         key.index == 0 ? ", or the key belongs to another archive" : "");
    else if (ftello(file) < status.st_size && key.index > marked)
        report_tampering(c, c->name, "bytes added after the last seal");
    OPENSSL_cleanse(&key, sizeof key);
}

/* Lists the log files in the directory that contain data. On failure, reports the failure and returns false. */
static bool list_logs(const char *directory, char ***logs, size_t *count)
{
    char **all = NULL;
    size_t all_count = 0;
    struct stat status;
    bool good = program_list_archive(directory, &all, &all_count);
    *count = 0;
    for (size_t i = 0; i < all_count; i++) {
        if (stat(all[i], &status) == 0 && status.st_size > 0)
            all[(*count)++] = all[i];
        else
            free(all[i]);
    }
    *logs = all;
    return good;
}

static void report_verdict(const seal_check *c)
{
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(c->first_ns, from);
    nl_time_format_iso(c->last_ns, to);
    if (c->count == 0)
        printf("%s: NOT PROVEN: no seal matches this key\n", c->name);
    else
        printf("%s: %s %" PRIu64 " byte%s in %zu file%s, as netlogd wrote them from %s to %s (%" PRIu64 " seal%s)\n",
               c->name, c->tampered ? "NOT PROVEN in full; proven:" : "proven:", c->bytes, nl_plural(c->bytes),
               c->file_count, nl_plural(c->file_count), from, to, c->count, nl_plural(c->count));
}

static bool check_seal_file(const char *directory, const char *name, const seal_key *first, int64_t since_ns)
{
    seal_check c = {.directory = directory,
                    .name = program_format("%s/%s", directory, name),
                    .since_ns = since_ns,
                    .hash = nl_memory_check(EVP_MD_CTX_new())};
    char **logs = NULL;
    size_t log_count = 0;
    /* List the files before reading the seals, because a seal names each file before netlogd writes to it. */
    c.tampered = !list_logs(directory, &logs, &log_count);
    int fd = open(c.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file != NULL)
        check_chain(&c, file, *first);
    else
        report_tampering(&c, c.name, "%s", strerror(errno));
    for (size_t i = 0; i < c.file_count; i++)
        check_file(&c, &c.files[i], i + 1 == c.file_count);
    for (size_t i = 0; i < log_count; i++) {
        if (c.count > 0)
            check_other(&c, logs[i]);
        free(logs[i]);
    }
    report_verdict(&c);
    for (size_t i = 0; i < c.file_count; i++)
        free(c.files[i].name);
    if (c.file_count > 0 && c.files[c.file_count - 1].fd >= 0)
        close(c.files[c.file_count - 1].fd);
    if (file != NULL)
        fclose(file);
    free(c.files);
    free(logs);
    free(c.name);
    EVP_MD_CTX_free(c.hash);
    return !c.tampered;
}

static int is_seal_file(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), tail = strlen(".seal");
    return length >= tail && strcmp(entry->d_name + length - tail, ".seal") == 0;
}

bool verify_seals(const char *directory, const seal_key *first, int64_t since_ns)
{
    struct dirent **names = NULL;
    char *path = program_copy(directory);
    for (size_t length = strlen(path); length > 1 && path[length - 1] == '/';)
        path[--length] = '\0';
    int count = scandir(path, &names, is_seal_file, alphasort);
    bool good = count > 0;
    if (!good)
        printf("%s: NOT PROVEN: the directory has no seal file\n", path);
    for (int i = 0; i < count; i++) {
        good = check_seal_file(path, names[i]->d_name, first, since_ns) && good;
        free(names[i]);
    }
    free(names);
    free(path);
    return good;
}
