/*
 * Uses every way to log while memory is scarce, and prints which events the library accepted. For
 * test_scarce_memory.py.
 *
 *   scarce_memory FIRST COUNT DESTINATION [SECOND-DESTINATION]
 *   scarce_memory limit BYTES DESTINATION [SECOND-DESTINATION]
 *   scarce_memory read FIRST COUNT SOURCE
 *   scarce_memory recover FIRST COUNT
 *   scarce_memory kill DESTINATION
 *   scarce_memory activation FIRST COUNT DESTINATION FILE
 *
 * The allocations numbered FIRST to FIRST + COUNT - 1 fail (0 0: no allocation fails). With limit, the address space
 * may grow by at most BYTES. Prints "allocations N", then "logged N" (events for which the library returned success)
 * and "failed N". The exit status is always 0.
 *
 * read prints "allocations N", "records N" (records that match the filter) and the result: "complete" or "failed:
 * REASON". recover prints the result of nl_recover. kill logs some events and is killed. activation writes a command to
 * the activation file of a log while memory is scarce, waits at most 10 s, and prints "applied" if the log applied the
 * command.
 */
#define _GNU_SOURCE
#include <NetLogger.h>
#include <dlfcn.h>
#include <errno.h>
#include <netlogger.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size),
    *__libc_realloc(void *old, size_t size);

static long first, count, allocations;
static int armed; /* counts only allocations between begin and end, not those of the program's start and exit */

static int fails(void)
{
    if (!__atomic_load_n(&armed, __ATOMIC_SEQ_CST))
        return 0;
    long number = __atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST);
    if (number < first || number >= first + count)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t number, size_t size)
{
    size_t whole;
    return __builtin_mul_overflow(number, size, &whole) ? NULL : realloc(old, whole);
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

char *strndup(const char *text, size_t most)
{
    size_t size = strnlen(text, most);
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (real == NULL)
        real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    return fails() ? MAP_FAILED : real(address, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *user)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (real == NULL)
        real =
            (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    return fails() ? EAGAIN : real(thread, attributes, function, user);
}

static long logged, failed;

static void scarce_memory_note(nl_status status)
{
    if (status == NL_OK)
        __atomic_add_fetch(&logged, 1, __ATOMIC_RELAXED);
    else
        __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
}

static void passed(void *user, const char *marker, const nl_field *fields, size_t field_count)
{
    (void)user, (void)marker, (void)fields, (void)field_count;
}

static void list_marker(void *user, const nl_marker_info *info)
{
    (void)user, (void)info;
}

static void list_probe(void *user, const nl_probe_info *info)
{
    (void)user, (void)info;
}

static void log_records(nl_log *log)
{
    nl_record *record = nl_record_new();
    nl_record_set_level(record, NL_USAGE);
    nl_record_set_event(record, "Record", 6);
    nl_record_add_int(record, "I", 1);
    nl_record_add_string(record, "TEXT", "one two", 7);
    for (int i = 0; i < 20; i++)
        nl_record_add_double(record, "D", i);
    if (log != NULL)
        scarce_memory_note(record != NULL ? nl_write_record(log, record) : NL_FAILED);
    nl_record_free(record);
}

static void log_kinds(nl_log *log)
{
    nl_string names[] = {{"A", 1}, {"B", 1}};
    nl_field values[] = {{.type = NL_TYPE_INT, .int_value = 1}, {.type = NL_TYPE_STRING, .string = {"b", 1}}};
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"Kind", 4}, names, 2);
    if (log != NULL)
        scarce_memory_note(kind != NULL ? nl_event_write(log, kind, values) : NL_FAILED);
    nl_event_kind_free(kind);
}

/* A single nl_span_end for spans of several names needs memory for each name. */
static void log_spans(nl_log *log)
{
    nl_field fields[30];
    nl_span spans[2];
    for (int i = 0; i < 30; i++)
        fields[i] = (nl_field){.name = {"F", 1}, .type = NL_TYPE_INT, .int_value = i};
    for (int i = 0; i < 2 && log != NULL; i++) {
        scarce_memory_note(
            nl_span_begin_fields(&spans[i], log, NL_USAGE, i == 0 ? "Named" : "Other", NULL, fields, 30));
        if (i == 0)
            scarce_memory_note(nl_span_end_fields(&spans[i], fields, 30));
    }
    NL_SPAN (log, NL_DEBUG, "Typed") {
        nl_span typed = nl_span_begin(log, NL_DEBUG, "Typed", NULL);
        for (int i = 0; i < 2; i++)
            nl_span_end(log == NULL || i == 0 ? &typed : &spans[1], "I", i);
    }
}

static void log_classic(const char *url)
{
    NL_Handle *handle = NetLoggerOpen("classic", url, NL_APPEND);
    NetLoggerSetTag(handle, "TAG=tag");
    if (handle != NULL)
        scarce_memory_note(NetLoggerWrite(handle, "Classic", "", "C=%d TEXT=%s", 1, "text") == 1 ? NL_OK : NL_FAILED);
    NetLoggerClose(handle);
}

static void *work(void *user)
{
    nl_log *log = user;
    for (int i = 0; i < 10; i++)
        if (log != NULL)
            scarce_memory_note(nl_write(log, NL_USAGE, "Thread", "I=%d", i));
    return NULL;
}

static void log_all(const char *url)
{
    nl_log *log = nl_open("scarce", url);
    char format[64], text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 5; i++) {
        snprintf(format, sizeof format, "A%d=%%d B=%%s C=%%5.2f", i);
        if (log != NULL)
            scarce_memory_note(nl_write(log, NL_USAGE, "Write", format, i, text, 1.5));
    }
    for (int i = 0; i < 5; i++)
        NL_EVENT(log, NL_USAGE, "Typed", "I", i, "TEXT", "text"); /* returns no status: not counted */
    log_records(log);
    log_kinds(log);
    log_spans(log);
    const nl_probe_options options[] = {{.kind = NL_PROBE_COUNT, .pattern = "m_*"},
                                        {.kind = NL_PROBE_TIME, .pattern = "m_1", .to = "m_2"},
                                        {.kind = NL_PROBE_CALL, .pattern = "m_*", .function = passed},
                                        {.kind = NL_PROBE_LOG, .pattern = "m_*", .log = log, .level = NL_USAGE}};
    nl_probe probes[4] = {0};
    for (size_t i = 0; i < (log != NULL ? 4 : 3); i++)
        probes[i] = nl_marker_attach(&options[i]);
    NL_MARKER(m_1, "I", 1);
    NL_MARKER(m_2, "I", 2);
    nl_marker_list(list_marker, NULL);
    nl_probe_list(list_probe, NULL);
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++)
        nl_marker_detach(probes[i]);
    static const char commands[] = "level Debug\nmarker m_* count\nevent Nothing off\n";
    nl_control(log, commands, sizeof commands - 1);
    NL_MARKER(m_1, "I", 1);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, log) == 0)
        pthread_join(thread, NULL);
    nl_flush(log);
    work(log);
    nl_status status = nl_close(log);
    if (status != NL_OK)
        printf("close: %s\n", nl_error_message());
}

static void scarce_memory_count_malformed(void *user, const nl_malformed *what)
{
    (void)what;
    ++*(long *)user;
}

/* Reads all records of a source that match an expression. */
static void scarce_memory_read_all(const char *source)
{
    const char *end = "complete";
    long records = 0, malformed = 0;
    nl_reader_options options = {.on_malformed = scarce_memory_count_malformed, .user = &malformed};
    nl_filter *filter = nl_filter_parse("NL.EVNT =~ '^(Write|Thread|Typed)$' && (I >= 0 || B ~ '*x*') "
                                        "&& LVL <= Usage && !(PROG in (a, b)) || NL.EVNT == Write");
    nl_reader *reader = filter != NULL ? nl_reader_open(source, &options) : NULL;
    const nl_record *record;
    nl_status status = reader != NULL ? nl_reader_seek(reader, 1) : NL_FAILED;
    while (status == NL_OK && (status = nl_reader_next(reader, &record)) == NL_OK)
        records += nl_filter_matches(filter, record);
    if (malformed > 0 || (status == NL_END && nl_reader_get_stats(reader)->lost > 0))
        end = "damaged";
    else if (status != NL_END)
        end = "failed: ";
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    printf("allocations %ld\nrecords %ld\n%s%s\n", allocations, records, end, *end == 'f' ? nl_error_message() : "");
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
    nl_reader_close(reader);
    nl_filter_free(filter);
}

static void recover_all(void)
{
    nl_status status = nl_recover(NULL, NULL, NULL);
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    printf("allocations %ld\n%s%s\n", allocations,
           status == NL_OK ? "complete" : "failed: ", status == NL_OK ? "" : nl_error_message());
}

static void be_killed(const char *url)
{
    nl_log *log = nl_open("scarce", url);
    for (int i = 0; i < 500; i++)
        NL_EVENT(log, NL_USAGE, "Write", "I", i, "TEXT", "text");
    raise(SIGKILL);
}

static void activate(const char *url, const char *path)
{
    nl_log *log = nl_open("scarce", url);
    FILE *file = fopen(path, "w");
    nl_flush(log);
    if (log == NULL || file == NULL || fputs("level Error\n", file) < 0)
        exit(2);
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
    fclose(file);
    for (int i = 0; i < 1000 && nl_is_on(log, NL_USAGE); i++) {
        nl_flush(log);
        usleep(10000);
    }
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    printf("allocations %ld\n%s\n", allocations, nl_is_on(log, NL_USAGE) ? "ignored" : "applied");
    nl_close(log);
}

static void limit_address_space(size_t more)
{
    char text[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        exit(2);
    fclose(file);
    size_t bytes = (size_t)atol(text) * (size_t)sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) != 0)
        exit(2);
}

int main(int argc, char **argv)
{
    static char out[1 << 16]; /* printing must not allocate */
    setvbuf(stdout, out, _IOFBF, sizeof out);
    if (strcmp(argv[1], "kill") == 0)
        be_killed(argv[2]);
    bool reads = strcmp(argv[1], "read") == 0, recovers = strcmp(argv[1], "recover") == 0,
         activates = strcmp(argv[1], "activation") == 0;
    if (strcmp(argv[1], "limit") == 0) {
        limit_address_space((size_t)atol(argv[2]));
    } else if (reads || recovers || activates) {
        first = atol(argv[2]);
        count = atol(argv[3]);
    } else {
        first = atol(argv[1]);
        count = atol(argv[2]);
    }
    if (activates) {
        activate(argv[4], argv[5]);
        return 0;
    }
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
    if (reads)
        scarce_memory_read_all(argv[4]);
    if (recovers)
        recover_all();
    if (reads || recovers)
        return 0;
    log_all(argv[3]);
    if (argc > 4)
        log_classic(argv[4]);
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    printf("allocations %ld\nlogged %ld\nfailed %ld\n", allocations, logged, failed);
    return 0;
}
