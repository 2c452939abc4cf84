#include "config.h"

#include "verify.h"

#include "base/text.h"
#include "file.h"
#include "file_index.h"
#include "missing.h"
#include "record/zstd_magic.h"
#include "program/gzip.h"
#include "program/program.h"
#include "take_out.h"
#include "reader/reader.h"
#include "reader/archive.h"
#include "base/memory.h"
#include "base/time_internal.h"
#include "seal_key.h"
#include "verify_seal.h"

#include <openssl/crypto.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELD_MAX = 64 << 10 }; /* maximum size in bytes of messages that wait for a file's first record */

/*
 * The state of the checks. Messages about a file wait for the file's first record, because a file without records gets
 * only one message on standard error.
 */
typedef struct check {
    nl_sequences *sequences; /* the numbers in all files */
    bool repair;
    bool damaged; /* a problem was found */
    const char *path;
    nl_reader *reader;
    regions regions; /* damaged regions of the current file */
    nl_buffer held;  /* waiting reports */
    uint64_t unheld; /* number of messages that did not fit into `held` */
    nl_buffer first; /* reason of the first problem, for the message */
} check;

static bool has_records(const check *c)
{
    return c->reader != NULL && nl_reader_get_stats(c->reader)->records > 0;
}

static void release_reports(check *c)
{
    fwrite(c->held.data, 1, c->held.size, stdout);
    if (c->unheld > 0)
        printf("%s: %" PRIu64 " more damaged place%s before the first record\n", c->path, c->unheld,
               nl_plural(c->unheld));
    c->held.size = 0;
    c->unheld = 0;
}

NL_PRINTF(2, 3)
static void report_on_file(check *c, const char *format, ...)
{
    char *line;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) < 0)
        program_memory_failed();
    va_end(arguments);
    if (has_records(c)) {
        release_reports(c);
        fputs(line, stdout);
    } else if (c->held.size < HELD_MAX) {
        nl_buffer_append_text(&c->held, line);
    } else {
        c->unheld++;
    }
    free(line);
}

static void verify_on_malformed(void *user, const nl_malformed *what)
{
    check *c = user;
    /* A malformed line extends to its newline. Blocks have line number 0. */
    report_on_file(c, "%s: at byte %" PRIu64 ": %zu byte%s: %s\n", c->path, what->offset, what->text.size,
                   nl_plural(what->text.size), what->reason);
    if (c->first.size == 0)
        nl_buffer_append(&c->first, what->reason, strlen(what->reason) + 1);
    regions_add(&c->regions, what->offset, what->offset + what->text.size, what->line > 0);
}

static void print_lost(const nl_lost *what)
{
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(what->from_ns, from);
    nl_time_format_iso(what->to_ns, to);
    printf("%s: stream ", what->source);
    for (size_t i = 0; i < sizeof what->stream; i++)
        printf("%02x", what->stream[i]);
    printf(": %" PRIu64 " record%s missing between %s and %s (dropped by the program: %" PRIu64 ")\n", what->count,
           what->count == 1 ? " is" : "s are", from, to, what->dropped);
}

/* Reports records that programs have dropped. Records that are missing from a file may be in the next file. */
static void on_lost(void *user, const nl_lost *what)
{
    (void)user;
    print_lost(what);
}

static void on_missing(void *user, const nl_lost *what)
{
    check *c = user;
    print_lost(what);
    c->damaged = true;
}

/* Reports the records that are in no file. */
static void report_missing(check *c)
{
    nl_sequences_list_missing(c->sequences, on_missing, c);
    if (nl_sequences_is_complete(c->sequences))
        return;
    printf("the files have too many streams or gaps for a complete check; more records may be missing\n");
    c->damaged = true;
}

/* Reads a file. Returns false if reading fails before the end. */
static bool read_file(check *c)
{
    nl_decoder_options options = {.source = c->path,
                                  .max_record_size = OUTPUT_FILE_LONGEST,
                                  .on_malformed = verify_on_malformed,
                                  .on_lost = on_lost,
                                  .sequences = c->sequences,
                                  .once = c->sequences,
                                  .user = c};
    nl_source *source = program_source_open_stored(c->path);
    c->reader = source != NULL ? nl_reader_open_source(source, &options, false) : NULL;
    const nl_record *record;
    nl_status status = NL_FAILED;
    while (c->reader != NULL && (status = nl_reader_next(c->reader, &record)) == NL_OK)
        program_progress(c->path, nl_reader_position(c->reader), nl_reader_size(c->reader),
                         nl_reader_get_stats(c->reader)->records);
    program_progress_end();
    return status == NL_END;
}

typedef enum packing { PACKING_NONE, PACKING_ZSTD, PACKING_GZIP } packing;

static packing find_packing(const char *path)
{
    char magic[NL_ZSTD_MAGIC_SIZE];
    FILE *file = fopen(path, "re");
    size_t got = file != NULL ? fread(magic, 1, sizeof magic, file) : 0;
    if (file != NULL)
        fclose(file);
    return nl_zstd_begins(magic, got) ? PACKING_ZSTD : gzip_begins(magic, got) ? PACKING_GZIP : PACKING_NONE;
}

/* Reports an incomplete record at the end of the file. Such a record may look complete. */
static void verify_check_end(check *c)
{
    uint64_t size, whole;
    if (find_packing(c->path) == PACKING_GZIP || nl_archive_find_end(c->path, &size, &whole) != NL_OK ||
        whole == size || regions_reach(&c->regions, size))
        return;
    report_on_file(c, "%s: at byte %" PRIu64 ": %" PRIu64 " byte%s: incomplete record at the end\n", c->path, whole,
                   size - whole, nl_plural(size - whole));
    regions_add(&c->regions, whole, size, false);
}

/*
 * Drops the positions of damage in decompressed text, because they do not correspond to positions in the file. Only the
 * end of a compressed file can be repaired.
 */
static void forget_places_in_compressed(check *c)
{
    if (c->regions.count == 0 || find_packing(c->path) == PACKING_NONE)
        return;
    if (c->repair)
        printf("%s: damage inside a compressed file cannot be repaired\n", c->path);
    c->regions.count = 0;
}

/*
 * Opens and locks a file before it is read for a repair. Otherwise, another process could continue to write to the file
 * that the repair replaces. Returns -1 on failure. If another process is writing to the file, sets *busy to true and
 * reports the problem.
 */
static int claim(const char *path, bool *busy)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || output_file_lock(fd, path) == NL_OK)
        return fd;
    *busy = true;
    program_error("%s; the file is not repaired", nl_error_message());
    close(fd);
    return -1;
}

static bool repair_file(const check *c, const char *path)
{
    bool repaired = take_out(path, &c->regions);
    if (repaired)
        printf("%s: repaired; the damaged parts are in %s.damaged\n", path, path);
    return repaired;
}

/* Returns whether a file without an index should have an index. The files of a spool have no index. */
static bool wants_index(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *delivered = program_format("%.*sdelivered", slash != NULL ? (int)(slash + 1 - path) : 0, path);
    struct stat status;
    bool spool = access(delivered, F_OK) == 0;
    free(delivered);
    return !spool && stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= FILE_INDEX_MIN;
}

static bool has_index(const char *path)
{
    char *name = file_index_name(path);
    bool there = access(name, F_OK) == 0;
    free(name);
    return there;
}

/*
 * Checks the indexes of a file. Returns false if they were damaged. With --repair, rebuilds them unless another process
 * is writing to the file (`mine` is false). `repaired` is true if the file itself was repaired.
 */
static bool check_index(check *c, const char *path, bool repaired, bool mine)
{
    file_index_state state = FILE_INDEX_NONE;
    if (has_index(path))
        state = repaired ? FILE_INDEX_BEHIND : file_index_verify(path);
    bool rebuild = state == FILE_INDEX_BEHIND || state == FILE_INDEX_DAMAGED || wants_index(path);
    if (c->repair && mine && state != FILE_INDEX_SOUND && rebuild && file_index_rebuild(path))
        printf("%s" NL_TIME_INDEX_SUFFIX ": rebuilt\n", path);
    return state != FILE_INDEX_DAMAGED;
}

/* Reports a file that has no records. `good` is true if the file was read to its end. */
static void report_no_records(check *c, bool good, uint64_t malformed)
{
    c->damaged = true;
    if (!good)
        program_print_error();
    else if (malformed > 0)
        program_error("%s: %s; %s malformed", c->path, c->first.data,
                      malformed == 1 ? "the whole file is" : "all parts are");
    else
        program_error("%s: no records", c->path);
}

static void print_summary(const check *c, const nl_decoder_stats *stats, bool good)
{
    printf("%s: %s: %" PRIu64 " record%s", c->path, good ? "sound" : "damaged", stats->records,
           nl_plural(stats->records));
    if (stats->blocks > 0)
        printf(" in %" PRIu64 " block%s", stats->blocks, nl_plural(stats->blocks));
    if (stats->malformed > 0 || c->regions.count > 0)
        printf(", %" PRIu64 " byte%s damaged in %zu place%s", regions_bytes(&c->regions),
               nl_plural(regions_bytes(&c->regions)), c->regions.count, nl_plural(c->regions.count));
    if (stats->repeated > 0)
        printf(", %" PRIu64 " record%s stored twice", stats->repeated, nl_plural(stats->repeated));
    putchar('\n');
}

/*
 * Checks a file. A file that the user has named must contain records. The only file of a directory (is_only) must not
 * be malformed as a whole.
 */
static void check_file(check *c, const char *path, bool is_named, bool is_only)
{
    bool busy = false;
    int claimed = c->repair ? claim(path, &busy) : -1;
    c->path = path;
    c->regions.count = 0;
    bool good = read_file(c);
    nl_decoder_stats stats = {0};
    if (c->reader != NULL)
        stats = *nl_reader_get_stats(c->reader);
    bool is_empty = stats.records == 0 && (is_named || (is_only && stats.malformed > 0));
    if (is_empty)
        report_no_records(c, good, stats.malformed);
    else if (!good)
        report_on_file(c, "%s\n", nl_error_message());
    forget_places_in_compressed(c);
    verify_check_end(c);
    nl_reader_close(c->reader);
    c->reader = NULL;
    if (!is_empty)
        release_reports(c);
    c->held.size = c->first.size = 0;
    c->unheld = 0;
    good = good && stats.malformed == 0 && c->regions.count == 0 && stats.repeated == 0;
    if (!is_empty)
        print_summary(c, &stats, good);
    bool repaired = c->repair && !busy && c->regions.count > 0 && repair_file(c, path);
    good = check_index(c, path, repaired, !busy) && good;
    c->damaged = c->damaged || !good;
    if (claimed >= 0)
        close(claimed);
}

/* ---- directories ---- */

static void check_directory(check *c, const char *path)
{
    char **files;
    size_t count = 0;
    missing *m = missing_open(path);
    if (!program_list_archive(path, &files, &count)) {
        missing_free(m);
        c->damaged = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        check_file(c, files[i], false, count == 1);
    if (missing_report(m, files, count, c->sequences))
        c->damaged = true;
    missing_free(m);
    if (count == 0) {
        program_error("%s: no logs in this directory", path);
        c->damaged = true;
    }
    for (size_t i = 0; i < count; i++)
        free(files[i]);
    free(files);
}

/* Checks the seals of all directories. Returns false if verify_seals returns false for one of them. */
static bool check_seals(char **paths, int count, const verify_options *options)
{
    seal_key key;
    if (seal_key_load(options->seal_key, &key) != NL_OK)
        program_fail_with_error(PROGRAM_PROBLEM);
    if (key.index != 0)
        program_fail(PROGRAM_PROBLEM, "%s: not the archive's first key; use the key that --create-seal-key printed",
                     options->seal_key);
    bool good = true;
    for (int i = 0; i < count; i++)
        good = verify_seals(paths[i], &key, options->since_ns) && good;
    OPENSSL_cleanse(&key, sizeof key);
    return good;
}

int verify(char **paths, int count, const verify_options *options)
{
    check c = {.sequences = nl_sequences_new(), .repair = options->repair};
    for (int i = 0; i < count; i++) {
        if (program_is_directory(paths[i]))
            check_directory(&c, paths[i]);
        else
            check_file(&c, paths[i], true, true);
    }
    report_missing(&c);
    if (options->seal_key != NULL && !check_seals(paths, count, options))
        c.damaged = true;
    nl_sequences_free(c.sequences);
    regions_free(&c.regions);
    nl_buffer_free(&c.held);
    nl_buffer_free(&c.first);
    return c.damaged ? PROGRAM_PROBLEM : PROGRAM_DONE;
}
