/*
 * Writes requests of a service as lines of ULM: make_archive RECORDS. A request has eight records on four hosts and a
 * random trace ID of 128 bits. 64 requests run at the same time. A record has about 170 bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 8, FLIGHT = 64, PER_SECOND = 50000 };

static const char *const steps[STEPS] = {"FrontStart", "AuthStart", "AuthEnd",  "QueryStart",
                                         "DiskRead",   "QueryEnd",  "SendBody", "FrontEnd"};

static uint64_t state = 88172645463325252u;

static uint64_t make_archive_draw(void) /* splitmix64 (G. Steele et al., OOPSLA 2014) */
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int main(int argc, char **argv)
{
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    struct {
        uint64_t high, low;
        unsigned step;
    } flight[FLIGHT] = {0};
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (uint64_t i = 0; i < count; i++) {
        const unsigned slot = (unsigned)(make_archive_draw() % FLIGHT), second = (unsigned)(i / PER_SECOND);
        if (flight[slot].step == 0) {
            flight[slot].high = make_archive_draw();
            flight[slot].low = make_archive_draw();
        }
        printf("DATE=202601%02u%02u%02u%02u.%06u HOST=node%u.example.org PROG=service LVL=Usage NL.EVNT=%s "
               "TRACE.ID=%016" PRIx64 "%016" PRIx64 " SIZE=%u STATUS=200\n",
               second / 86400 % 28 + 1, second / 3600 % 24, second / 60 % 60, second % 60,
               (unsigned)(i % PER_SECOND) * (1000000 / PER_SECOND), flight[slot].step / 2, steps[flight[slot].step],
               flight[slot].high, flight[slot].low, (unsigned)(make_archive_draw() % 100000));
        flight[slot].step = (flight[slot].step + 1) % STEPS;
    }
    return ferror(stdout) || fflush(stdout) != 0;
}
