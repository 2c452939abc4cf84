/*
 * A library for LD_PRELOAD. On SIGUSR2, the program attempts actions of an intruder, and writes the result of each
 * attempt to the file $FORBIDDEN_RESULTS, as a line "NAME ERRNO"; ERRNO is 0 if the attempt succeeded.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int results = -1;

static void forbidden_note(const char *name, long result)
{
    char line[80];
    int size = snprintf(line, sizeof line, "%s %d\n", name, result == -1 ? errno : 0);
    if (write(results, line, (size_t)size) != size)
        abort();
}

static long forbidden_connect_to(int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (const struct sockaddr *)&address, sizeof address);
}

static long run_shell(void)
{
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 0", NULL};
    return execv("/bin/sh", arguments);
}

static void try_all(int signal)
{
    (void)signal;
    forbidden_note("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
    forbidden_note("socket-raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    forbidden_note("socket-tcp", socket(AF_INET, SOCK_STREAM, 0));
    forbidden_note("write-shadow", open("/etc/shadow", O_WRONLY | O_CLOEXEC));
    forbidden_note("read-elsewhere", open(getenv("FORBIDDEN_FILE"), O_RDONLY | O_CLOEXEC));
    forbidden_note("create-elsewhere", open("/var/tmp/netlogger-forbidden", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    forbidden_note("connect", forbidden_connect_to(9));
    forbidden_note("unshare", syscall(SYS_unshare, 0x10000000));
    forbidden_note("mount", syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL));
    forbidden_note("bpf", syscall(SYS_bpf, 0, NULL, 0));
    forbidden_note("setuid", setuid(getuid()));
    forbidden_note("writable-code",
                   (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
#ifndef WITH_SANITIZER
    forbidden_note("kill-parent", kill(getppid(), 0));
    forbidden_note("ptrace", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
    forbidden_note("fork", syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
#endif
    forbidden_note("execute", run_shell());
    forbidden_note("end", 0);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FORBIDDEN_RESULTS");
    results = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (results >= 0)
        signal(SIGUSR2, try_all);
    unsetenv("FORBIDDEN_RESULTS"); /* ignores programs that this program starts */
}
