#include "config.h"

#include "log/session.h"

#include "base/descriptor.h"
#include "transport/log_options.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static enum { NOT_YET, MADE, NONE } directory_state;
static pthread_mutex_t directory_mutex = PTHREAD_MUTEX_INITIALIZER; /* held while the directory is created */
static int creation_errno; /* errno of the latest failed creation of the directory */
/* Descriptors of the directory and of the locked file in it. The program may have closed either descriptor. */
static int directory = -1, lock_file = -1;
static nl_identity directory_identity, lock_identity;
static char directory_path[256];
static bool kept; /* a closed log left events; protected by the registry's lock */

const char *nl_session_parent(void)
{
    nl_environment environment;
    nl_environment_read(&environment);
    return environment.shm;
}

/*
 * Takes the lock, which shows that the process is running. The kernel releases the lock when the process ends, even if
 * the process is killed. Returns false with errno on failure.
 */
static bool session_lock(int in, int flags)
{
    lock_file = openat(in, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    lock_identity = nl_identity_of(lock_file);
    return lock_file >= 0 && fcntl(lock_file, F_OFD_SETLK, &lock) == 0;
}

/*
 * Creates the directory. Returns false with errno on failure. Takes the lock before the directory gets its final name,
 * because recovery assumes that an unlocked directory belongs to a process that has ended.
 */
static bool make_directory(void)
{
    char hidden[sizeof directory_path + 1];
    uint32_t random;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)nl_time_now_ns();
    unsigned user = geteuid();
    int process = getpid();
    int size = snprintf(directory_path, sizeof directory_path, "%s/netlogger-%u-%d-%08x", nl_session_parent(), user,
                        process, random);
    snprintf(hidden, sizeof hidden, "%s/.netlogger-%u-%d-%08x", nl_session_parent(), user, process, random);
    errno = ENAMETOOLONG;
    if (size < 0 || (size_t)size >= sizeof directory_path || mkdir(hidden, 0700) != 0)
        return false;
    directory = open(hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    directory_identity = nl_identity_of(directory);
    return directory >= 0 && session_lock(directory, O_CREAT | O_EXCL) && rename(hidden, directory_path) == 0;
}

/*
 * Reopens descriptors that the program has closed, as daemons do. Returns false if the directory is missing or
 * inaccessible, or the lock cannot be taken again.
 */
static bool reopen_directory(void)
{
    if (!nl_identity_holds(&directory_identity, directory)) {
        int fd = open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return false;
        if (!nl_identity_holds(&directory_identity, fd)) {
            close(fd);
            errno = ENOENT;
            return false;
        }
        directory = fd;
    }
    return nl_identity_holds(&lock_identity, lock_file) || session_lock(directory, 0);
}

/* Returns the descriptor of the directory, which the first call with `create` creates; -1 with errno on failure. */
static int open_directory(bool create)
{
    pthread_mutex_lock(&directory_mutex);
    errno = ENOENT;
    if (directory_state == NOT_YET && create) {
        directory_state = make_directory() ? MADE : NONE;
        creation_errno = errno;
    }
    bool good = directory_state == MADE && reopen_directory();
    if (directory_state == NONE)
        errno = creation_errno;
    int in = good ? directory : -1;
    pthread_mutex_unlock(&directory_mutex);
    return in;
}

static int open_file(const nl_mapping *mapping, int flags)
{
    int in = open_directory((flags & O_CREAT) != 0);
    return in >= 0 ? openat(in, mapping->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600) : -1;
}

/* Maps the bytes from the offset `repeat` to the end a second time, directly after the end. For anonymous memory, uses
 * mremap(2) with an old size of 0, which copies the mapping. */
static bool map_again(char *memory, int fd, size_t size, size_t repeat)
{
    size_t again = size - repeat;
    if (fd < 0)
        return mremap(memory + repeat, 0, again, MREMAP_MAYMOVE | MREMAP_FIXED, memory + size) != MAP_FAILED;
    return mmap(memory + size, again, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)repeat) != MAP_FAILED;
}

char *nl_mapping_map(int fd, size_t size, size_t repeat)
{
    size_t whole = repeat > 0 ? 2 * size - repeat : size;
    char *memory = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    int flags = MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
    if (mmap(memory, size, PROT_READ | PROT_WRITE, flags, fd, 0) != MAP_FAILED &&
        (repeat == 0 || map_again(memory, fd, size, repeat)))
        return memory;
    int error = errno;
    munmap(memory, whole);
    errno = error;
    return NULL;
}

/*
 * Returns whether the limit RLIMIT_FSIZE allows a file of this size. Writing to a larger file would raise a signal in
 * the program.
 */
static bool may_be_large(size_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

static bool reserve(int fd, size_t from, size_t to)
{
    int error;
    do
        error = posix_fallocate(fd, (off_t)from, (off_t)(to - from));
    while (error == EINTR);
    errno = error;
    return error == 0;
}

static void unlink_file(const nl_mapping *mapping)
{
    int saved = errno;
    int in = mapping->named ? open_directory(false) : -1; /* after fork, the directory belongs to the parent */
    if (in >= 0)
        unlinkat(in, mapping->name, 0);
    errno = saved;
}

/*
 * Creates and maps a file. Closes the descriptor after mapping, because a program may have few descriptors and many
 * threads. Returns false with errno on failure.
 */
static bool make_file(nl_mapping *mapping, size_t size, size_t reserved, size_t repeat)
{
    errno = EFBIG;
    if (!may_be_large(size))
        return false;
    int fd = open_file(mapping, O_CREAT | O_EXCL);
    if (fd < 0)
        return false;
    mapping->named = true;
    if (ftruncate(fd, (off_t)size) == 0 && reserve(fd, 0, reserved))
        mapping->memory = nl_mapping_map(fd, size, repeat);
    int error = errno;
    close(fd);
    if (mapping->memory == NULL)
        unlink_file(mapping);
    mapping->named = mapping->memory != NULL;
    errno = error;
    return mapping->named;
}

bool nl_mapping_make(nl_mapping *mapping, size_t size, size_t reserved, size_t repeat, const char *name, ...)
{
    va_list arguments;
    *mapping = (nl_mapping){.fd = -1};
    va_start(arguments, name);
    vsnprintf(mapping->name, sizeof mapping->name, name, arguments);
    va_end(arguments);
    mapping->size = repeat > 0 ? 2 * size - repeat : size;
    if (make_file(mapping, size, reserved, repeat))
        return true;
    /*
     * If the file cannot be created, the module uses anonymous memory. A container's /dev/shm may be small, and the
     * size of files may be limited.
     */
    mapping->error = errno != 0 ? errno : ENOENT;
    mapping->memory = nl_mapping_map(-1, size, repeat);
    return mapping->memory != NULL;
}

bool nl_mapping_reserve(nl_mapping *mapping, size_t from, size_t to)
{
    if (mapping->fd >= 0)
        return reserve(mapping->fd, from, to);
    if (!mapping->named)
        return true;
#ifdef MADV_POPULATE_WRITE
    int saved = errno;
    if (madvise(mapping->memory + from, to - from, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL) {
        errno = errno == EFAULT ? ENOSPC : errno;
        return false;
    }
    errno = saved;
#endif
    int fd = open_file(mapping, 0); /* Linux before 5.14 */
    if (fd < 0)
        return false;
    bool good = reserve(fd, from, to);
    int error = errno;
    close(fd);
    errno = error;
    return good;
}

void nl_mapping_forget(nl_mapping *mapping)
{
    unlink_file(mapping);
}

void nl_mapping_remove(nl_mapping *mapping)
{
    unlink_file(mapping);
    nl_mapping_leave(mapping);
}

void nl_mapping_leave(nl_mapping *mapping)
{
    if (mapping->memory != NULL)
        munmap(mapping->memory, mapping->size);
    if (mapping->fd >= 0)
        close(mapping->fd);
    mapping->memory = NULL;
    mapping->named = false;
    mapping->fd = -1;
}

void nl_shared_head_set(nl_shared_head *head)
{
    memcpy(head->magic, NL_SHARED_MAGIC, sizeof head->magic);
    head->version = NL_SHARED_VERSION;
    head->process = getpid();
}

static void close_directory(void)
{
    if (directory >= 0)
        nl_identity_close(&directory_identity, directory);
    if (lock_file >= 0)
        nl_identity_close(&lock_identity, lock_file);
    directory = lock_file = -1;
    directory_state = NOT_YET;
    kept = false;
}

void nl_session_keep(void)
{
    kept = true;
}

bool nl_session_is_kept(void)
{
    return kept;
}

const char *nl_session_directory(void)
{
    return directory_path;
}

void nl_session_remove(void)
{
    int in = !kept ? open_directory(false) : -1;
    if (in >= 0) {
        unlinkat(in, "lock", 0);
        rmdir(directory_path);
    }
    close_directory();
}

void nl_session_after_fork(void)
{
    pthread_mutex_init(&directory_mutex, NULL);
    close_directory();
}
