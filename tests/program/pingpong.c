/*
 * Two ends of a ping-pong that log the messages that they send and receive: pingpong URL listen PORT COUNT, and
 * pingpong URL ADDRESS PORT COUNT. The field TRUE is the kernel's clock, read without libraries that change it. TSC is
 * the processor's counter. The test gets the true times from these fields.
 */
#include <netlogger.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "x86_64 only"
#endif

enum { PAUSE_US = 20000 };

static long long true_ns(void)
{
    struct timespec now;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_clock_gettime), "D"((long)CLOCK_REALTIME), "S"(&now)
                     : "rcx", "r11", "memory");
    return result == 0 ? now.tv_sec * 1000000000LL + now.tv_nsec : 0;
}

/* Logs an event. Reads the true time and the counter just before, so that they are close to the event's own time. */
static void pingpong_say(nl_log *log, const char *event, int id)
{
    long long before = true_ns(), tsc = (long long)__builtin_ia32_rdtsc();
    nl_write(log, NL_USAGE, event, "MSG.ID=%d TRUE=%lld TSC=%lld", id, before, tsc);
}

static int meet(const char *address, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (strcmp(address, "listen") == 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0 || listen(fd, 1) != 0)
            return -1;
        fd = accept(fd, NULL, NULL);
    } else {
        inet_pton(AF_INET, address, &name.sin_addr);
        for (int i = 0; connect(fd, (struct sockaddr *)&name, sizeof name) != 0; i++) {
            if (i == 600)
                return -1;
            close(fd);
            fd = socket(AF_INET, SOCK_STREAM, 0);
            usleep(100000);
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int main(int argc, char **argv)
{
    nl_log *log = argc == 5 ? nl_open("pingpong", argv[1]) : NULL;
    if (log == NULL)
        return puts(nl_error_message()), 1;
    int fd = meet(argv[2], atoi(argv[3])), count = atoi(argv[4]), begins = strcmp(argv[2], "listen") != 0;
    char byte = 'x';
    for (int i = 0; i < count && fd >= 0; i++) {
        if (begins) {
            usleep(PAUSE_US);
            pingpong_say(log, "Ping.Send", i);
            if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
                break;
            pingpong_say(log, "Pong.Receive", i);
        } else {
            if (read(fd, &byte, 1) != 1)
                break;
            pingpong_say(log, "Ping.Receive", i);
            pingpong_say(log, "Pong.Send", i);
            if (write(fd, &byte, 1) != 1)
                break;
        }
    }
    return fd < 0 || nl_close(log) != NL_OK;
}
