#include "config.h"

#include "log/session.h"

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

/* The folder: -1 not made yet, -2 can't be made. */
enum { NOT_YET = -1, NONE = -2 };
static int folder = NOT_YET;
static pthread_mutex_t folder_mutex = PTHREAD_MUTEX_INITIALIZER; /* for making it */
static char folder_path[256];
static int lock_file = -1;
static bool kept; /* with what a closed log could not deliver; the registry's lock guards it */

const char *nl_session_parent(void)
{
    const char *parent = secure_getenv("NETLOGGER_SHM");
    return parent != NULL && *parent != '\0' ? parent : "/dev/shm";
}

/* The lock says that the process lives: the kernel takes it away however the process ends. */
static bool make_lock(int in)
{
    lock_file = openat(in, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return lock_file >= 0 && fcntl(lock_file, F_OFD_SETLK, &lock) == 0;
}

/* It gets its name when the lock is there: who finds a folder that is not locked may take the process for dead. */
static int make_folder(void)
{
    char hidden[sizeof folder_path + 1];
    uint32_t random;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)nl_time_now_ns();
    unsigned user = geteuid();
    int process = getpid();
    int size = snprintf(folder_path, sizeof folder_path, "%s/netlogger-%u-%d-%08x", nl_session_parent(), user, process,
                        random);
    snprintf(hidden, sizeof hidden, "%s/.netlogger-%u-%d-%08x", nl_session_parent(), user, process, random);
    if (size < 0 || (size_t)size >= sizeof folder_path || mkdir(hidden, 0700) != 0)
        return NONE;
    int fd = open(hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && make_lock(fd) && rename(hidden, folder_path) == 0 ? fd : NONE;
}

static int open_file(const nl_mapping *mapping)
{
    pthread_mutex_lock(&folder_mutex);
    if (folder == NOT_YET)
        folder = make_folder();
    int in = folder;
    pthread_mutex_unlock(&folder_mutex);
    if (in == NONE)
        return -1;
    return openat(in, mapping->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Maps what stands at repeat once more at its end. Memory without a file is copied by asking to move none of it:
 * mremap(2). */
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
    int why = errno;
    munmap(memory, whole);
    errno = why;
    return NULL;
}

/* A file that may not become so large would bring the program a signal. */
static bool may_be_large(size_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

static bool make_file(nl_mapping *mapping, size_t size, size_t reserved, size_t repeat)
{
    if (!may_be_large(size))
        return false;
    mapping->fd = open_file(mapping);
    if (mapping->fd < 0)
        return false;
    if (ftruncate(mapping->fd, (off_t)size) == 0 && nl_mapping_reserve(mapping, 0, reserved))
        mapping->memory = nl_mapping_map(mapping->fd, size, repeat);
    if (mapping->memory == NULL)
        nl_mapping_remove(mapping);
    return mapping->memory != NULL;
}

bool nl_mapping_make(nl_mapping *mapping, size_t size, size_t reserved, size_t repeat, const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(mapping->name, sizeof mapping->name, name, arguments);
    va_end(arguments);
    mapping->size = repeat > 0 ? 2 * size - repeat : size;
    mapping->memory = NULL;
    if (make_file(mapping, size, reserved, repeat))
        return true;
    /* No room for files (a container's /dev/shm is small, files may be limited): memory without a name may still be
     * had. */
    mapping->fd = -1;
    mapping->memory = nl_mapping_map(-1, size, repeat);
    return mapping->memory != NULL;
}

bool nl_mapping_reserve(nl_mapping *mapping, size_t from, size_t to)
{
    int why;
    if (mapping->fd < 0)
        return true;
    do
        why = posix_fallocate(mapping->fd, (off_t)from, (off_t)(to - from));
    while (why == EINTR);
    errno = why;
    return why == 0;
}

void nl_mapping_forget(nl_mapping *mapping)
{
    if (mapping->fd >= 0 && folder >= 0)
        unlinkat(folder, mapping->name, 0);
}

void nl_mapping_remove(nl_mapping *mapping)
{
    if (mapping->memory != NULL)
        munmap(mapping->memory, mapping->size);
    mapping->memory = NULL;
    nl_mapping_forget(mapping);
    if (mapping->fd >= 0)
        close(mapping->fd);
    mapping->fd = -1;
}

void nl_mapping_leave(nl_mapping *mapping)
{
    if (mapping->memory != NULL)
        munmap(mapping->memory, mapping->size);
    if (mapping->fd >= 0)
        close(mapping->fd);
    mapping->memory = NULL;
    mapping->fd = -1;
}

void nl_shared_head_set(nl_shared_head *head)
{
    memcpy(head->magic, NL_SHARED_MAGIC, sizeof head->magic);
    head->version = NL_SHARED_VERSION;
    head->process = getpid();
}

static void close_folder(void)
{
    if (folder >= 0)
        close(folder);
    if (lock_file >= 0)
        close(lock_file);
    folder = NOT_YET;
    lock_file = -1;
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

void nl_session_remove(void)
{
    if (folder >= 0 && !kept) {
        unlinkat(folder, "lock", 0);
        rmdir(folder_path);
    }
    close_folder();
}

void nl_session_after_fork(void)
{
    pthread_mutex_init(&folder_mutex, NULL);
    close_folder();
}
