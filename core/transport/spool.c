#include "config.h"

#include "transport/spool.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/private_directory.h"
#include "transport/spool_row.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEGMENTS = 16,        /* number of segments in a full spool; the oldest segment is dropped as a whole */
    PEEK_SIZE = 64 << 10, /* number of bytes to deliver at once, unless a put is larger; netlogd stores larger
                             deliveries more slowly */
};

struct nl_spool {
    char *directory;
    int directory_fd;
    nl_identity identity; /* identity of the spool's directory */
    size_t limit;
    bool oldest;
    nl_spool_row *own;       /* row of this process, or NULL */
    nl_spool_row *adopted;   /* row of another process that is being delivered, or NULL */
    uint64_t rows_opened;    /* number of rows that were opened so far */
    uint64_t own_number;     /* position of `own` among the rows that were opened, from 1 */
    uint64_t adopted_number; /* position of `adopted` among the rows that were opened, from 1 */
    struct dirent **left;    /* names of other rows, which were unlocked when they were listed */
    int left_count;          /* number of names in left */
    int left_next;           /* index in left of the next name */
    bool others_unsafe;      /* the rows `adopted` and `left` may be unsynced */
    bool unsafe;             /* data was written since the latest sync */
    bool sync_failed;        /* a sync has failed since the spool was last empty */
    int64_t unsafe_since_ns; /* monotonic time of the oldest put that is not synced; 0 if everything is synced */
};

/* ---- rows of other processes ---- */

static void note_unsafe(nl_spool *spool)
{
    spool->unsafe = true;
    if (spool->unsafe_since_ns == 0)
        spool->unsafe_since_ns = nl_monotonic_ns();
}

static bool has_suffix(const struct dirent *entry, const char *suffix)
{
    size_t size = strlen(entry->d_name), suffix_size = strlen(suffix);
    return size > suffix_size && size < NL_SPOOL_NAME_SIZE && strcmp(entry->d_name + size - suffix_size, suffix) == 0;
}

static int is_row_file(const struct dirent *entry)
{
    return has_suffix(entry, ".row") || has_suffix(entry, ".tmp");
}

/* Compares the names of rows, which begin with the time. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/*
 * Returns whether the file exists and no process has locked it. If the function cannot determine this, it returns true.
 * The caller's attempt to adopt the row then fails, and the caller tries again later.
 */
static bool is_free(const nl_spool *spool, const char *name)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(spool->directory_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno != ENOENT;
    bool locked = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    close(fd);
    return !locked;
}

static void forget_left(nl_spool *spool)
{
    for (int i = spool->left_next; i < spool->left_count; i++)
        free(spool->left[i]);
    free(spool->left);
    spool->left = NULL;
    spool->left_count = spool->left_next = 0;
}

/* Lists the rows of processes that have ended. Returns NL_FAILED on failure. */
static nl_status list_left(nl_spool *spool)
{
    int count = scandir(spool->directory, &spool->left, is_row_file, compare_names);
    if (count < 0)
        return nl_error_set_errno("read the spool %s", spool->directory);
    for (int i = 0; i < count; i++) {
        struct dirent *entry = spool->left[i];
        bool unfinished = has_suffix(entry, ".tmp"), left = is_free(spool, entry->d_name);
        if (unfinished && left)
            unlinkat(spool->directory_fd, entry->d_name, 0); /* the file's process was killed before its first put */
        if (unfinished || !left) {
            free(entry);
            continue;
        }
        *strrchr(entry->d_name, '.') = '\0';
        spool->left[spool->left_count++] = entry;
    }
    spool->others_unsafe = spool->left_count > 0;
    if (spool->others_unsafe)
        note_unsafe(spool);
    return NL_OK;
}

static int is_segment_or_row(const struct dirent *entry)
{
    return has_suffix(entry, ".row") || nl_spool_row_name_size(entry->d_name) > 0;
}

void nl_spool_find_damaged(const nl_spool *spool, void (*on_damaged)(const char *path))
{
    struct dirent **entries;
    char name[NL_SPOOL_NAME_SIZE], before[NL_SPOOL_NAME_SIZE] = "";
    int count = scandir(spool->directory, &entries, is_segment_or_row, compare_names);
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        const size_t size = nl_spool_row_name_size(file);
        snprintf(name, sizeof name, "%.*s", (int)(size > 0 ? size : strlen(file) - strlen(".row")), file);
        /* A process that removes a row removes its segments before its state. Therefore, a segment without a state
         * belongs to a damaged row. */
        if (strcmp(name, before) != 0 && nl_spool_row_is_damaged(spool->directory_fd, name) &&
            faccessat(spool->directory_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            char *path;
            if (asprintf(&path, "%s/%s", spool->directory, name) < 0)
                break;
            on_damaged(path);
            free(path);
        }
        memcpy(before, name, sizeof before);
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
}

/* Opens the next row of another process. Returns NL_END if no row is left. */
static nl_status adopt_next(nl_spool *spool)
{
    while (spool->adopted == NULL && spool->left_next < spool->left_count) {
        struct dirent *entry = spool->left[spool->left_next];
        if (nl_spool_row_adopt(spool->directory, spool->directory_fd, entry->d_name, &spool->adopted) == NL_FAILED)
            return NL_FAILED;
        free(entry);
        spool->left_next++;
        spool->adopted_number = ++spool->rows_opened;
    }
    return spool->adopted != NULL ? NL_OK : NL_END;
}

/* ---- opening ---- */

static void forget_rows(nl_spool *spool)
{
    nl_spool_row_close(spool->own);
    nl_spool_row_close(spool->adopted);
    spool->own = spool->adopted = NULL;
    forget_left(spool);
}

/*
 * Checks that no other user can change the spool's directory, or replace it in its parent. Returns NL_FAILED on
 * failure.
 */
static nl_status check_owner(const nl_spool *spool)
{
    char *above = nl_memory_check(strdup(spool->directory));
    struct stat status;
    if (above == NULL)
        return NL_FAILED;
    *strrchr(above, '/') = '\0';
    nl_status result = NL_OK;
    if (fstat(spool->directory_fd, &status) != 0)
        result = nl_error_set_errno("open the spool %s", spool->directory);
    else if (nl_private_directory_check(spool->directory, &status, false) != NL_OK)
        result = nl_error_prepend("spool");
    else if (nl_private_directory_check_path(*above != '\0' ? above : "/", true) != NL_OK)
        result = nl_error_prepend("spool");
    free(above);
    return result;
}

static nl_status open_directory(nl_spool *spool)
{
    spool->directory_fd = open(spool->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (spool->directory_fd < 0)
        return nl_error_set_errno("open the spool %s", spool->directory);
    spool->identity = nl_identity_of(spool->directory_fd);
    nl_status status = check_owner(spool);
    if (status != NL_OK)
        close(spool->directory_fd);
    return status;
}

/*
 * If the program has closed a descriptor, opens the spool again; the previous row of this process then counts as a row
 * of another process. Returns false on failure.
 */
static bool check_descriptors(nl_spool *spool)
{
    bool sound = nl_identity_holds(&spool->identity, spool->directory_fd) &&
                 (spool->own == NULL || nl_spool_row_is_sound(spool->own)) &&
                 (spool->adopted == NULL || nl_spool_row_is_sound(spool->adopted));
    if (sound)
        return true;
    forget_rows(spool);
    nl_identity_close(&spool->identity, spool->directory_fd);
    if (open_directory(spool) != NL_OK) {
        spool->directory_fd = -1;
        return false;
    }
    if (list_left(spool) == NL_OK)
        return true;
    close(spool->directory_fd);
    spool->directory_fd = -1; /* the next call tries to open the directory again */
    return false;
}

static bool is_own_directory(int parent_fd, const char *path)
{
    struct stat status;
    return fstatat(parent_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid();
}

static bool belongs_to_another_user(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_uid != geteuid();
}

/*
 * Searches `parent` for this user's directory PATH.XXXXXX, where PATH is in `parent`, and copies its name to `found`.
 * If there are several, chooses the first in alphabetical order, because all processes must choose the same. Returns
 * false if it finds no directory or cannot read `parent`.
 */
static bool find_other_name(const char *parent, const char *path, char found[NAME_MAX + 1])
{
    const char *name = strrchr(path, '/') + 1;
    const size_t size = strlen(name);
    *found = '\0';
    DIR *entries = opendir(parent);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const bool better = *found == '\0' || strcmp(entry->d_name, found) < 0;
        if (better && strncmp(entry->d_name, name, size) == 0 && entry->d_name[size] == '.' &&
            is_own_directory(dirfd(entries), entry->d_name))
            snprintf(found, NAME_MAX + 1, "%s", entry->d_name);
    }
    if (entries != NULL)
        closedir(entries);
    return *found != '\0';
}

/*
 * Returns this user's directory PATH.XXXXXX in `parent`, which the caller frees; NULL on failure. If create is true,
 * creates the directory. Another process may create a directory at the same time, and its name may then be chosen.
 */
static char *other_name(const char *parent, const char *path, bool create)
{
    char *made = NULL, *chosen, found[NAME_MAX + 1];
    if (create && asprintf(&made, "%s.XXXXXX", path) < 0) {
        nl_memory_failed();
        return NULL;
    }
    if (create && mkdtemp(made) == NULL) {
        nl_error_set_errno("create the spool %s", made);
        free(made);
        return NULL;
    }
    if (!find_other_name(parent, path, found))
        return made;
    if (asprintf(&chosen, "%s/%s", parent, found) < 0) {
        nl_memory_failed();
        chosen = NULL;
    }
    if (create && (chosen == NULL || strcmp(chosen, made) != 0))
        rmdir(made);
    free(made);
    return chosen;
}

/*
 * Returns DIRECTORY/DESTINATION+UID, which the caller frees; NULL on failure. DESTINATION is the URL without its
 * options, at most 200 bytes, in which '_' replaces all bytes except letters, digits, dots and hyphens. Creates the
 * directory if it does not exist. If another user has created it, creates or uses DIRECTORY/DESTINATION+UID.XXXXXX;
 * other users cannot guess this name. If this user has a directory DIRECTORY/DESTINATION, which earlier releases
 * created, returns that directory.
 */
static char *make_directory(const char *directory, const nl_url *url)
{
    size_t size = strcspn(url->text, "?");
    char *path;
    if (asprintf(&path, "%s/%.*s+%u", directory, (int)(size < 200 ? size : 200), url->text, (unsigned)geteuid()) < 0) {
        nl_memory_failed();
        return NULL;
    }
    char *suffix = strrchr(path, '+');
    for (char *at = path + strlen(directory) + 1; at < suffix; at++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *at) == NULL)
            *at = '_';
    *suffix = '\0';
    if (is_own_directory(AT_FDCWD, path))
        return path;
    *suffix = '+';
    if (is_own_directory(AT_FDCWD, path))
        return path;
    char *other = other_name(directory, path, false);
    if (other == NULL && (mkdir(path, 0700) == 0 || !belongs_to_another_user(path)))
        return path; /* if it could not be created, opening it reports the problem */
    if (other == NULL)
        other = other_name(directory, path, true);
    free(path);
    return other;
}

nl_spool *nl_spool_open(const char *directory, const nl_url *destination, size_t size, bool oldest)
{
    nl_spool *spool = nl_memory_check(calloc(1, sizeof *spool));
    if (spool == NULL)
        return NULL;
    *spool = (nl_spool){.directory_fd = -1, .limit = size, .oldest = oldest};
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        nl_error_set_errno("create the spool %s", directory);
    else if ((spool->directory = make_directory(directory, destination)) != NULL && open_directory(spool) == NL_OK &&
             list_left(spool) == NL_OK)
        return spool;
    nl_spool_close(spool);
    return NULL;
}

void nl_spool_close(nl_spool *spool)
{
    if (spool == NULL)
        return;
    forget_rows(spool);
    if (spool->directory_fd >= 0)
        nl_identity_close(&spool->identity, spool->directory_fd);
    free(spool->directory);
    free(spool);
}

bool nl_spool_is_empty(const nl_spool *spool)
{
    return spool->own == NULL && spool->adopted == NULL && spool->left_next == spool->left_count;
}

uint64_t nl_spool_count_own(const nl_spool *spool)
{
    return spool->own != NULL ? nl_spool_row_count(spool->own) : 0;
}

/* Returns the row to deliver now, or NULL. */
static nl_spool_row *first_row(const nl_spool *spool)
{
    return spool->adopted != NULL ? spool->adopted : spool->own;
}

/* Removes the first row, which is empty. */
static void remove_first_row(nl_spool *spool)
{
    nl_spool_row **row = spool->adopted != NULL ? &spool->adopted : &spool->own;
    nl_spool_row_remove(*row);
    *row = NULL;
    if (!nl_spool_is_empty(spool))
        return;
    spool->others_unsafe = spool->unsafe = spool->sync_failed = false;
    spool->unsafe_since_ns = 0;
}

/* ---- putting ---- */

bool nl_spool_can_hold(const nl_spool *spool, size_t size)
{
    return NL_SPOOL_PUT_HEAD + size <= spool->limit;
}

nl_status nl_spool_put(nl_spool *spool, const char *data, size_t size)
{
    if (!check_descriptors(spool))
        return NL_FAILED;
    bool too_large = !nl_spool_can_hold(spool, size);
    if (too_large && !spool->oldest)
        return nl_error_set(NL_ERROR_LIMIT, "the spool %s is too small for a record of %zu bytes; raise spool_size",
                            spool->directory, size);
    if (spool->own == NULL) {
        spool->own = nl_spool_row_make(spool->directory, spool->directory_fd);
        spool->own_number = ++spool->rows_opened;
    }
    if (spool->own == NULL)
        return NL_FAILED;
    if (too_large)
        return nl_spool_row_drop(spool->own, data, size);
    while (spool->oldest && spool->own->segments != NULL && spool->own->size + NL_SPOOL_PUT_HEAD + size > spool->limit)
        if (nl_spool_row_drop_first(spool->own) != NL_OK)
            return NL_FAILED;
    if (spool->own->size + NL_SPOOL_PUT_HEAD + size > spool->limit)
        return nl_error_set(NL_ERROR_FULL, "the spool %s is full, and accepts no more records; raise spool_size",
                            spool->directory);
    if (nl_spool_row_put(spool->own, data, size, spool->limit / SEGMENTS) != NL_OK)
        return NL_FAILED;
    note_unsafe(spool);
    return NL_OK;
}

static nl_status sync_rows(nl_spool *spool)
{
    nl_status status = spool->own != NULL ? nl_spool_row_sync(spool->own) : NL_OK;
    if (spool->others_unsafe && spool->adopted != NULL &&
        nl_spool_row_sync_files(spool->directory, spool->directory_fd, spool->adopted->name) != NL_OK)
        status = NL_FAILED;
    for (int i = spool->left_next; spool->others_unsafe && i < spool->left_count; i++)
        if (nl_spool_row_sync_files(spool->directory, spool->directory_fd, spool->left[i]->d_name) != NL_OK)
            status = NL_FAILED;
    spool->others_unsafe = false;
    return status;
}

/*
 * Syncs the directory, which contains the names of the files, and its parent, which contains the directory's name.
 * Returns NL_FAILED on failure.
 */
static nl_status sync_directory(const nl_spool *spool)
{
    int above = openat(spool->directory_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fsync(spool->directory_fd) == 0 && above >= 0 && fsync(above) == 0;
    nl_status status = synced ? NL_OK : nl_error_set_errno("fsync the spool %s", spool->directory);
    if (above >= 0)
        close(above);
    return status;
}

nl_status nl_spool_sync(nl_spool *spool)
{
    if (spool->unsafe_since_ns == 0)
        return NL_OK;
    if (spool->unsafe) {
        if (!check_descriptors(spool))
            return NL_FAILED;
        nl_status rows = sync_rows(spool);
        spool->unsafe = false;
        if (rows != NL_OK || sync_directory(spool) != NL_OK) {
            spool->sync_failed = true;
            return NL_FAILED;
        }
    }
    if (spool->sync_failed)
        return nl_error_set(NL_ERROR_SYSTEM,
                            "fsync the spool %s: an earlier fsync failed; the spool's records may not be on the disk",
                            spool->directory);
    spool->unsafe_since_ns = 0;
    return NL_OK;
}

int64_t nl_spool_unsafe_since_ns(const nl_spool *spool)
{
    return spool->unsafe_since_ns;
}

/* ---- delivering ---- */

nl_status nl_spool_peek(nl_spool *spool, nl_buffer *out)
{
    out->size = 0;
    if (!check_descriptors(spool))
        return NL_FAILED;
    while (adopt_next(spool) != NL_FAILED) {
        nl_spool_row *row = first_row(spool);
        if (row == NULL)
            return NL_END;
        if (nl_spool_row_peek(row, out, PEEK_SIZE) != NL_OK)
            return NL_FAILED;
        if (!nl_spool_row_is_empty(row))
            return NL_OK;
        remove_first_row(spool);
    }
    return NL_FAILED;
}

void nl_spool_delivered(nl_spool *spool, size_t size)
{
    nl_spool_row *row;
    size_t done;
    do {
        row = first_row(spool);
        if (row == NULL)
            return;
        done = nl_spool_row_delivered(row, size);
        size -= done;
        if (nl_spool_row_is_empty(row))
            remove_first_row(spool);
    } while (size > 0 && done > 0);
}

nl_spool_front nl_spool_get_front(const nl_spool *spool)
{
    const nl_spool_row *row = first_row(spool);
    if (row == NULL)
        return (nl_spool_front){0};
    return (nl_spool_front){.row = row == spool->adopted ? spool->adopted_number : spool->own_number,
                            .passed = row->passed};
}

uint64_t nl_spool_lost(const nl_spool *spool)
{
    return first_row(spool) != NULL ? first_row(spool)->state.lost : 0;
}

nl_status nl_spool_read_losses(nl_spool *spool, nl_buffer *out)
{
    return first_row(spool) != NULL ? nl_spool_row_read_losses(first_row(spool), out) : NL_OK;
}

void nl_spool_loss_reported(nl_spool *spool, uint64_t count)
{
    nl_spool_row *row = first_row(spool);
    if (row != NULL)
        nl_spool_row_loss_reported(row, count < row->state.lost ? count : row->state.lost);
}
