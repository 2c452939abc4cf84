/* In a guest: guest_clock NAME ADDRESS SECONDS PPM sets the host name, the address of the network card, and a wrong
 * clock. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static int raise_card(const char *address)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = "eth0"};
    struct sockaddr_in *name = (struct sockaddr_in *)&request.ifr_addr;
    name->sin_family = AF_INET;
    inet_pton(AF_INET, address, &name->sin_addr);
    if (ioctl(fd, SIOCSIFADDR, &request) != 0)
        return perror("SIOCSIFADDR"), 1;
    inet_pton(AF_INET, "255.255.255.0", &name->sin_addr);
    if (ioctl(fd, SIOCSIFNETMASK, &request) != 0)
        return perror("SIOCSIFNETMASK"), 1;
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    return ioctl(fd, SIOCSIFFLAGS, &request) != 0 ? perror("SIOCSIFFLAGS"), 1 : 0;
}

int main(int argc, char **argv)
{
    struct timespec now;
    struct timex t = {.modes = ADJ_FREQUENCY};
    if (argc != 5 || sethostname(argv[1], strlen(argv[1])) != 0 || raise_card(argv[2]) != 0)
        return 1;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += atoi(argv[3]);
    t.freq = (long)(atof(argv[4]) * 65536);
    if (clock_settime(CLOCK_REALTIME, &now) != 0 || adjtimex(&t) < 0)
        return perror("clock"), 1;
    return 0;
}
