/* What rules make of a source, for a program that adapts to it: of nlkernel's output, or of a reader's records. */
#include "config.h"

#include "synthesis/sections.h"

#include "base/environment_value.h"
#include "base/error.h"
#include "base/program_memory.h"
#include "base/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct nl_environment {
    /* The kernel's: nlkernel applies the rules, and we read what it makes. */
    pid_t child;
    int fd;
    nl_decoder *decoder;
    char buffer[16 << 10];
    bool ended;

    /* A source's: we apply them. */
    nl_reader *reader;
    nl_synthesis *rules;
    uint64_t taken;
    int64_t latest_ns;
};

/* How long records of a collector are waited for that may have happened before others which are there. */
enum { WAIT_FOR_OTHERS_MS = 500, LOOK_EVERY_MS = 20 };

/* ---- nlkernel ---- */

static void run_child(char **arguments, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    dup2(out, 1);
    execv(arguments[0], arguments);
    _exit(127);
}

static bool start_child(nl_environment *e, char **arguments)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return nl_error_set_errno("pipe") == NL_OK;
    e->child = fork();
    if (e->child == 0)
        run_child(arguments, ends[1], parent);
    close(ends[1]);
    e->fd = ends[0];
    return e->child > 0 || nl_error_set_errno("fork") == NL_OK;
}

/* The path of nlkernel: the installed one, or the one that the user names. NULL with the reason. */
static const char *find_nlkernel(void)
{
    if (nl_is_privileged()) {
        nl_error_set("cannot start nlkernel: the program has more rights than the user who started it");
        return NULL;
    }
    const char *named = nl_environment_value("NETLOGGER_NLKERNEL");
    if (named != NULL && strchr(named, '/') == NULL) {
        nl_error_set("NETLOGGER_NLKERNEL=%s: not a path with a slash", named);
        return NULL;
    }
    return named != NULL ? named : NL_BINDIR "/nlkernel";
}

static bool open_kernel(nl_environment *e, const char *rules, const char *const *parameters)
{
    const char *program = find_nlkernel();
    if (program == NULL)
        return false;
    size_t count = 0, size = 0;
    while (parameters != NULL && parameters[count] != NULL)
        count++;
    const char **arguments = calloc(2 * count + 8, sizeof *arguments);
    if (arguments == NULL)
        return nl_memory_failed() == NL_OK;
    arguments[size++] = program;
    arguments[size++] = "live";
    arguments[size++] = "--quiet";
    arguments[size++] = "--dest=-";
    for (size_t i = 0; i < count; i++) {
        arguments[size++] = "--set";
        arguments[size++] = parameters[i];
    }
    arguments[size++] = "--rules";
    arguments[size++] = rules;
    bool good = start_child(e, (char **)arguments);
    free(arguments);
    e->decoder = nl_decoder_new(NULL);
    return good && e->decoder != NULL;
}

/* Waits for bytes, and gives them to the decoder. NL_AGAIN when there are none. */
static nl_status read_child(nl_environment *e, int timeout_ms)
{
    struct pollfd wait = {.fd = e->fd, .events = POLLIN};
    int ready = poll(&wait, 1, timeout_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR))
        return NL_AGAIN;
    ssize_t size = ready < 0 ? -1 : read(e->fd, e->buffer, sizeof e->buffer);
    if (size < 0 && errno == EINTR)
        return NL_AGAIN;
    if (size < 0)
        return nl_error_set_errno("nlkernel: read");
    e->ended = size == 0;
    if (e->ended)
        nl_decoder_finish(e->decoder);
    else
        nl_decoder_feed(e->decoder, e->buffer, (size_t)size);
    return NL_OK;
}

/* Why there is no more of it. */
static nl_status end_of_child(nl_environment *e)
{
    int how;
    if (e->child <= 0 || waitpid(e->child, &how, 0) != e->child)
        return NL_END;
    e->child = 0;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
        return nl_error_set("cannot start nlkernel; install it as " NL_BINDIR "/nlkernel, or set NETLOGGER_NLKERNEL "
                            "to its path");
    if (WIFEXITED(how) && WEXITSTATUS(how) != 0)
        return nl_error_set("nlkernel failed with exit status %d; it printed the reason on standard error",
                            WEXITSTATUS(how));
    return NL_END;
}

static nl_status next_of_child(nl_environment *e, int timeout_ms, const nl_record **record)
{
    int64_t until_ms = timeout_ms < 0 ? INT64_MAX : nl_monotonic_ms() + timeout_ms;
    for (;;) {
        nl_status status = nl_decoder_next(e->decoder, record);
        if (status == NL_END || e->ended)
            return status == NL_OK ? NL_OK : end_of_child(e);
        if (status != NL_AGAIN)
            return status;
        int64_t left_ms = until_ms - nl_monotonic_ms();
        status = read_child(e, timeout_ms < 0 ? -1 : left_ms > 0 ? (int)left_ms : 0);
        if (status == NL_FAILED || (status == NL_AGAIN && nl_monotonic_ms() >= until_ms))
            return status;
    }
}

/* ---- a reader ---- */

static bool open_source(nl_environment *e, const char *rules, const char *source, const char *const *parameters)
{
    nl_reader_options options = {.nonblocking = true};
    e->rules = nl_synthesis_read(rules, parameters);
    e->reader = e->rules != NULL ? nl_reader_open(source, &options) : NULL;
    return e->reader != NULL;
}

/* Takes what there is of the source. */
static nl_status take_records(nl_environment *e)
{
    enum { AT_ONCE = 1000 };
    const nl_record *record;
    nl_status status = NL_OK;
    for (int i = 0; i < AT_ONCE && (status = nl_reader_next(e->reader, &record)) == NL_OK; i++) {
        nl_synthesis_put(e->rules, record);
        if (record->time_ns > e->latest_ns)
            e->latest_ns = record->time_ns;
    }
    if (status == NL_END && !e->ended) {
        e->ended = true;
        nl_synthesis_finish(e->rules);
    } else if (!e->ended && e->latest_ns != 0) {
        /* What is live is waited for by the clock; what is of the past by its own times. */
        int64_t now_ns = nl_time_now_ns(), wait_ns = WAIT_FOR_OTHERS_MS * INT64_C(1000000);
        bool is_live = now_ns - e->latest_ns < 60 * (int64_t)NL_NS_PER_SECOND;
        nl_synthesis_advance(e->rules, (is_live ? now_ns : e->latest_ns) - wait_ns);
    }
    return status;
}

static nl_status next_of_source(nl_environment *e, int timeout_ms, const nl_record **record)
{
    int64_t until_ms = timeout_ms < 0 ? INT64_MAX : nl_monotonic_ms() + timeout_ms;
    for (;;) {
        *record = nl_synthesis_next(e->rules);
        if (*record != NULL)
            return NL_OK;
        if (e->ended)
            return NL_END;
        nl_status status = take_records(e);
        if (status == NL_FAILED)
            return status;
        if (status != NL_AGAIN)
            continue;
        *record = nl_synthesis_next(e->rules);
        if (*record != NULL)
            return NL_OK;
        if (nl_monotonic_ms() >= until_ms)
            return NL_AGAIN;
        int64_t left_ms = until_ms - nl_monotonic_ms();
        poll(NULL, 0, left_ms < LOOK_EVERY_MS ? (int)left_ms : LOOK_EVERY_MS);
    }
}

/* ---- the interface ---- */

nl_environment *nl_environment_open(const char *rules, const char *source, const char *const *parameters)
{
    NL_REQUIRE(rules != NULL, "rules is NULL", NULL);
    nl_environment *e = nl_memory_check(calloc(1, sizeof *e));
    if (e == NULL)
        return NULL;
    e->fd = -1;
    bool good = source == NULL ? open_kernel(e, rules, parameters) : open_source(e, rules, source, parameters);
    if (good)
        return e;
    nl_environment_close(e);
    return NULL;
}

nl_status nl_environment_next(nl_environment *e, int timeout_ms, const nl_record **record)
{
    NL_REQUIRE(e != NULL && record != NULL, "environment or record is NULL", NL_FAILED);
    return e->reader != NULL ? next_of_source(e, timeout_ms, record) : next_of_child(e, timeout_ms, record);
}

void nl_environment_close(nl_environment *e)
{
    if (e == NULL)
        return;
    if (e->child > 0) {
        kill(e->child, SIGTERM);
        while (waitpid(e->child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (e->fd >= 0)
        close(e->fd);
    nl_decoder_free(e->decoder);
    if (e->reader != NULL)
        nl_reader_close(e->reader);
    nl_synthesis_free(e->rules);
    free(e);
}
