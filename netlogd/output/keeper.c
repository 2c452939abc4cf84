#include "config.h"

#include "keeper.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/write_some.h"
#include "file.h"
#include "program/program.h"
#include "record/encoder.h"
#include "selection.h"
#include "take_out.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BATCH_SIZE = 256 << 10,
    FILES_MAX = 64,       /* maximum number of files per save */
    SAVE_SIZE = 64 << 20, /* bytes of files after which the keeper saves */
    NICE = 10
};

struct keeper {
    const output_options *options;
    size_t memory_max;
    pthread_t thread;
    sem_t wakeups;
    atomic_bool stop;
    _Atomic uint64_t requested, newest, finished;
    _Atomic uint64_t requests, records;
    _Atomic(char *) failure;
    char *state_path; /* path of the stored decisions */
    /* Only the thread uses the following members. */
    selection *selection;
    kept_identity unsaved; /* the latest decided file whose save has failed; its number is 0 if no save has failed */
    uint64_t unsaved_records;
};

/* ---- copying ---- */

static bool is_stopping(const keeper *k)
{
    return atomic_load_explicit(&k->stop, memory_order_relaxed);
}

static nl_status write_encoded(nl_encoder *encoder, int fd, const char *name)
{
    nl_buffer batch = {0};
    nl_encoder_finish(encoder, &batch);
    bool good = nl_write_all(fd, batch.data, batch.size);
    nl_buffer_free(&batch);
    return good ? NL_OK : nl_error_set_errno("write %s", name);
}

/* Writes the kept records of a file to `fd`, and adds their number to *count. */
static nl_status copy_records(keeper *k, uint64_t number, nl_reader *reader, int fd, const char *new, uint64_t *count)
{
    const output_options *o = k->options;
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = o->format, .zstd_level = o->zstd_level});
    nl_status status = NL_OK, next = NL_END;
    const nl_record *record;
    for (uint64_t i = 0; status == NL_OK && !is_stopping(k) && (next = nl_reader_next(reader, &record)) == NL_OK; i++) {
        if (!selection_keeps(k->selection, number, i, record))
            continue;
        *count += nl_encoder_put(encoder, record) == NL_OK;
        if (nl_encoder_size(encoder) >= BATCH_SIZE)
            status = write_encoded(encoder, fd, new);
    }
    if (status == NL_OK && !is_stopping(k) && next == NL_FAILED)
        program_error("%s; netlogd cannot keep the requests in the rest of this file", nl_error_message());
    if (status == NL_OK)
        status = write_encoded(encoder, fd, new);
    nl_encoder_free(encoder);
    return status;
}

/* Gives a new file the owner and permissions of the old file, and the time at which the old file was last written. */
static bool copy_status(int fd, const char *old)
{
    struct stat status;
    if (stat(old, &status) != 0)
        return true;
    const struct timespec times[] = {status.st_atim, status.st_mtim};
    return make_alike(fd, &status) && futimens(fd, times) == 0;
}

/*
 * Writes the kept file of a file. The temporary name is not the name of a log file (program_list_archive). Returns
 * NL_AGAIN when stopping.
 */
static nl_status write_kept_file(keeper *k, const char *name, const char *kept, uint64_t number, uint64_t *count)
{
    nl_reader *reader = selection_open_file(name);
    if (reader == NULL)
        return access(name, F_OK) != 0 ? NL_OK : NL_FAILED; /* the file was deleted */
    char *new = output_file_name_beside(k->options, ".kept.keeping.new");
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    nl_status status = fd >= 0 ? copy_records(k, number, reader, fd, new, count) : nl_error_set_errno("open %s", new);
    if (status == NL_OK && is_stopping(k))
        status = NL_AGAIN;
    if (status == NL_OK && !(copy_status(fd, name) && fsync(fd) == 0 && rename(new, kept) == 0))
        status = nl_error_set_errno("write %s", kept);
    if (fd >= 0)
        close(fd);
    if (status != NL_OK)
        unlink(new);
    nl_reader_close(reader);
    free(new);
    return status;
}

/* ---- the thread ---- */

/*
 * Decides about a file, and writes its kept file. Adds the number of kept records to *count. Returns NL_AGAIN if
 * requests are open and the next file is still written, or when stopping.
 */
static nl_status decide_file(keeper *k, uint64_t number, uint64_t *count)
{
    uint64_t records = 0;
    nl_status status = NL_AGAIN;
    selection_state state = selection_decide(k->selection, number, atomic_load(&k->newest));
    atomic_store(&k->requests, selection_count_requests(k->selection));
    if (state != SELECTION_DECIDED)
        return status;
    const output_options files = output_options_of_kept(k->options);
    char *name = output_file_name(k->options, number), *kept = output_file_name(&files, number);
    if (selection_keeps_any(k->selection, number))
        status = write_kept_file(k, name, kept, number, &records);
    else /* a killed netlogd may have written a kept file */
        status = unlink(kept) == 0 || errno == ENOENT ? NL_OK : nl_error_set_errno("delete %s", kept);
    free(kept);
    free(name);
    *count += status == NL_OK ? records : 0;
    return status;
}

/* Stores on disk that this file and all earlier files are finished. */
static nl_status save_finished(keeper *k, kept_identity identity, uint64_t count)
{
    k->unsaved = identity;
    k->unsaved_records = count;
    selection_get_window(k->selection)->finished = identity;
    output_file_sync_directory(k->options->path);
    if (kept_window_save(selection_get_window(k->selection), k->state_path) != NL_OK)
        return NL_FAILED;
    output_file_sync_directory(k->options->path);
    atomic_fetch_add(&k->records, count);
    atomic_store(&k->finished, identity.number);
    k->unsaved.number = 0;
    return NL_OK;
}

/*
 * Finishes the requested files, as many as one save may store. Several files share a save, because a save waits for the
 * disk three times. Returns NL_AGAIN if no file can be finished now.
 */
static nl_status finish_files(keeper *k)
{
    uint64_t *numbers, records = 0, size = 0;
    size_t count, i = 0;
    kept_identity latest = {0};
    nl_status status = NL_OK;
    if (k->unsaved.number > 0) /* the selection has dropped its decisions about these files */
        return save_finished(k, k->unsaved, k->unsaved_records);
    if (output_file_list(k->options, atomic_load(&k->finished), &numbers, &count) != NL_OK)
        return NL_AGAIN;
    for (; i < count && i < FILES_MAX && size < SAVE_SIZE && numbers[i] <= atomic_load(&k->requested); i++) {
        char *name = output_file_name(k->options, numbers[i]);
        const kept_identity identity = kept_identity_read(name, numbers[i]);
        free(name);
        status = decide_file(k, numbers[i], &records);
        if (status != NL_OK)
            break;
        latest = identity;
        size += identity.size;
    }
    free(numbers);
    if (i > 0) /* if a later file has failed, the next call fails again and reports this */
        return save_finished(k, latest, records);
    return status == NL_OK ? NL_AGAIN : status;
}

static void begin_selection(keeper *k)
{
    k->selection = selection_new(k->options, k->memory_max, &k->stop);
    kept_window *window = selection_get_window(k->selection);
    kept_window_load(window, k->state_path, k->options);
    atomic_store(&k->finished, window->finished.number);
}

static void *run_keeper(void *user)
{
    keeper *k = user;
    if (setpriority(PRIO_PROCESS, 0, NICE) != 0) /* Linux changes only the calling thread */
        program_error("cannot lower the priority of the thread that keeps requests: %m");
    begin_selection(k);
    while (!is_stopping(k)) {
        nl_status status = finish_files(k);
        if (status == NL_FAILED)
            free(atomic_exchange(&k->failure, program_copy(nl_error_message())));
        while (status != NL_OK && sem_wait(&k->wakeups) != 0)
            ;
    }
    selection_free(k->selection);
    return user;
}

/* ---- the server's thread ---- */

keeper *keeper_new(const output_options *options, size_t memory_max)
{
    keeper *k = nl_memory_check(calloc(1, sizeof *k));
    k->options = options;
    k->memory_max = memory_max;
    k->state_path = output_file_name_beside(options, ".keeping");
    sem_init(&k->wakeups, 0, 0);
    int error = nl_thread_create(&k->thread, NULL, run_keeper, k);
    if (error == 0)
        return k;
    sem_destroy(&k->wakeups);
    free(k->state_path);
    free(k);
    errno = error;
    return nl_error_null(NL_ERROR_SYSTEM, "cannot start the thread that keeps requests: %m");
}

void keeper_free(keeper *k)
{
    if (k == NULL)
        return;
    atomic_store(&k->stop, true);
    sem_post(&k->wakeups);
    pthread_join(k->thread, NULL);
    sem_destroy(&k->wakeups);
    free(atomic_load(&k->failure));
    free(k->state_path);
    free(k);
}

void keeper_request(keeper *k, uint64_t number, uint64_t newest)
{
    atomic_store(&k->newest, newest);
    atomic_store(&k->requested, number);
    sem_post(&k->wakeups);
}

uint64_t keeper_finished(const keeper *k)
{
    return atomic_load(&k->finished);
}

char *keeper_take_failure(keeper *k)
{
    return atomic_exchange(&k->failure, NULL);
}

bool keeper_has_failed(const keeper *k)
{
    return atomic_load(&k->failure) != NULL;
}

keeper_counts keeper_count(const keeper *k)
{
    return (keeper_counts){atomic_load(&k->requests), atomic_load(&k->records)};
}
