/*
 * nlrecover delivers the events of killed processes.
 *
 * The shared memory of a user's processes contains the names of files and collectors. The user can change these names.
 * With --everyone and without --dest, a child process therefore takes the identity of a user before it recovers the
 * events of this user. For this, nlrecover needs only the capabilities that permit a change of the process's identity.
 */
#include "config.h"

#include "base/text.h"
#include "program/program.h"
#include "transport/log_options.h"

#include "base/memory.h"
#include "base/monotonic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    USER_TIME_S = 60, /* time limit in seconds for one user, so that other users need not wait */
    POLL_US = 10000,
};

typedef struct arguments {
    nl_recover_options recover;
    bool quiet;
    uint64_t logs, records;
} arguments;

static const nl_option options[] = {
    {.name = "list",
     .letter = 'l',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, recover.list_only),
     .help = "List the events that can be recovered, and change nothing"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     NL_OPTION_MEMBER(arguments, recover.destination),
     .help = "Send events to URL instead of to each log's own destination: a file, x-netlog://HOST, or - for standard "
             "output"},
    {.name = "everyone",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, recover.everyone),
     .help = "Recover the events of the processes of all users, with the rights of each user; requires root"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, quiet),
     .help = "Print only errors and warnings"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .summary = "Deliver the events that killed or crashed processes had logged but not yet sent.",
    .notes = "The events wait in shared memory (/dev/shm, or $NETLOGGER_SHM) and in the spools of these processes. The "
             "next program with the same URL delivers the spool of a process that ended normally; nlrecover does not "
             "list it. If a collector is unreachable, nlrecover keeps the events and exits with status 1; run "
             "nlrecover again later. Events that were logged to standard output or error, to a terminal or to memory "
             "require --dest. "
             "netlogd recovers the events of its own user; nlrecover.timer runs nlrecover --everyone for all users.",
};

/* Prints a line about one recovered log. The names in the line may be hostile, because another user may have written
 * them into shared memory. */
static void nlrecover_report(void *user, const nl_recovered *what)
{
    arguments *a = user;
    a->logs++;
    a->records += what->records;
    const char *url = *what->url != '\0' ? what->url : "a destination with a long name";
    const char *destination = a->recover.destination, *plural = nl_plural(what->records);
    bool failed = what->status != NL_OK;
    if (!failed && a->quiet)
        return;
    char *line = failed
                     ? program_format("%s (process %d), %" PRIu64 " event%s for %s: %s", what->prog, what->process,
                                      what->records, plural, url, what->message)
                     : program_format("%s (process %d): %" PRIu64 " event%s %s %s%s%s", what->prog, what->process,
                                      what->records, plural, a->recover.list_only ? "waiting for" : "recovered, for",
                                      url, destination != NULL ? ", to " : "", destination != NULL ? destination : "");
    program_replace_controls(line, strlen(line));
    for (char *at = line; (at = strpbrk(at, "\n\t")) != NULL;)
        *at = '?';
    if (failed)
        program_error("%s", line);
    else
        fprintf(stderr, "%s\n", line);
    free(line);
}

static nl_status recover(arguments *a)
{
    nl_status status = nl_recover(&a->recover, nlrecover_report, a);
    if (status != NL_OK && a->logs == 0)
        program_print_error();
    return status;
}

/* ---- all users ---- */

static const char *shared_memory(void)
{
    nl_environment environment;
    nl_environment_read(&environment);
    return environment.shm;
}

/* Lists the users whose processes have directories in shared memory. Returns their number. The caller frees *users. */
static size_t list_users(uid_t **users)
{
    size_t count = 0;
    DIR *parent = opendir(shared_memory());
    if (parent == NULL)
        program_fail(PROGRAM_PROBLEM, "open %s: %s", shared_memory(), strerror(errno));
    const struct dirent *entry;
    *users = NULL;
    while ((errno = 0, entry = readdir(parent)) != NULL) {
        unsigned user, process;
        struct stat status;
        if (sscanf(entry->d_name, "netlogger-%u-%u-", &user, &process) != 2 ||
            fstatat(dirfd(parent), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
            continue;
        size_t i = 0;
        while (i < count && (*users)[i] != status.st_uid)
            i++;
        if (i < count)
            continue;
        *users = nl_memory_check(reallocarray(*users, count + 1, sizeof **users));
        (*users)[count++] = status.st_uid;
    }
    if (errno != 0)
        program_fail(PROGRAM_PROBLEM, "read %s: %s", shared_memory(), strerror(errno));
    closedir(parent);
    return count;
}

/* Permanently changes the rights of this process to those of a user. */
static void become(uid_t user)
{
    enum { NO_GROUP = 65534 }; /* for users without an entry; a group with the user's ID may belong to others */
    errno = 0;
    const struct passwd *known = getpwuid(user);
    if (known == NULL && errno != 0 && errno != ENOENT && errno != ESRCH)
        program_fail(PROGRAM_PROBLEM, "look up user %u: %s", (unsigned)user, strerror(errno));
    gid_t group = known != NULL ? known->pw_gid : NO_GROUP;
    char *shared = program_copy(shared_memory()), *home = program_copy(known != NULL ? known->pw_dir : "/");
    bool ok = known != NULL ? initgroups(known->pw_name, group) == 0 : setgroups(0, NULL) == 0;
    if (!ok || setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0 || (user != 0 && setuid(0) == 0))
        program_fail(PROGRAM_PROBLEM, "become user %u: %s", (unsigned)user, strerror(errno));
    clearenv(); /* the user must not get root's settings */
    setenv("NETLOGGER_SHM", shared, 1);
    setenv("HOME", home, 1);
    free(shared);
    free(home);
    if (chdir("/") != 0)
        program_fail(PROGRAM_PROBLEM, "enter /: %s", strerror(errno));
    umask(077);
}

/* Waits for the process that recovers a user's events, and returns whether it succeeded. Kills the process after
 * USER_TIME_S, because the user can stop it with a signal. */
static bool await_user(pid_t child, uid_t user)
{
    int64_t until_ns = nl_monotonic_ns() + USER_TIME_S * NL_NS_PER_SECOND;
    int result;
    pid_t ended;
    while ((ended = waitpid(child, &result, WNOHANG)) == 0 && nl_monotonic_ns() < until_ns)
        usleep(POLL_US);
    if (ended == child)
        return WIFEXITED(result) && WEXITSTATUS(result) == PROGRAM_DONE;
    kill(child, SIGKILL); /* if kill fails, the child ends when the service ends */
    program_error("user %u: recovery takes longer than %d s; the next run tries again", (unsigned)user, USER_TIME_S);
    return false;
}

static nl_status recover_users(arguments *a)
{
    uid_t *users;
    size_t count = list_users(&users);
    nl_status status = NL_OK;
    a->recover.everyone = false;
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            program_fail(PROGRAM_PROBLEM, "fork: %s", strerror(errno));
        if (child == 0) {
            become(users[i]);
            _exit(recover(a) == NL_OK ? PROGRAM_DONE : PROGRAM_PROBLEM);
        }
        if (!await_user(child, users[i]))
            status = NL_FAILED;
    }
    free(users);
    return status;
}

int main(int argc, char **argv)
{
    program_start("nlrecover");
    arguments a = {.quiet = false};
    options_parse(&usage, argc, argv, &a);
    if (a.recover.everyone && geteuid() != 0)
        options_fail("--everyone: only root can recover the processes of other users");
    bool each = a.recover.everyone && a.recover.destination == NULL && !a.recover.list_only;
    nl_status status = each ? recover_users(&a) : recover(&a);
    if (!a.quiet && a.logs == 0 && status == NL_OK && !each)
        fprintf(stderr, "nothing to recover\n");
    return program_finish(status == NL_OK ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
