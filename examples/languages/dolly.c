/* The example dolly of README.md in C: cc dolly.c $(pkg-config --cflags --libs netlogger) */
#include <netlogger.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char url[256];
    int size = 49332;
    snprintf(url, sizeof url, "x-netlog://%s:%s", argc > 1 ? argv[1] : "dolly.lbl.gov", argc > 2 ? argv[2] : "14830");
    nl_log *log = nl_open("testprog", url);
    nl_write(log, NL_USAGE, "WriteData", "SEND.SZ=%d", size);
    nl_close(log);
    return 0;
}
