/* Writes a log with one record per microsecond, of about 131 bytes each: make_log RECORDS near|shuffled FILE. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    uint64_t arrival;
    uint64_t number;
} entry;

static uint64_t state = 88172645463325252u;

static uint64_t random_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int make_log_compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->arrival != y->arrival)
        return x->arrival < y->arrival ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/*
 * Lets the records arrive from eight senders. The delay of each sender is 0.2 ms longer than that of the previous
 * sender, plus a random part of less than 0.3 ms.
 */
static void arrive_nearly_in_order(entry *entries, uint64_t count)
{
    enum { PART = 1 << 20 };
    for (uint64_t i = 0; i < count; i++)
        entries[i].arrival = i + i % 8 * 200 + random_number() % 300;
    for (uint64_t from = 0; from < count;
         from += PART / 2) /* it suffices to sort parts that overlap by more than the maximum delay */
        qsort(entries + from, count - from < PART ? count - from : PART, sizeof *entries, make_log_compare);
}

static void shuffle(entry *entries, uint64_t count)
{
    for (uint64_t i = count; i-- > 1;) {
        uint64_t other = random_number() % (i + 1), number = entries[i].number;
        entries[i].number = entries[other].number;
        entries[other].number = number;
    }
}

static void write_record(FILE *log, uint64_t i)
{
    unsigned second = (unsigned)(i / 1000000), us = (unsigned)(i % 1000000);
    fprintf(log,
            "DATE=20000330%02u%02u%02u.%06u HOST=dpss%u.lbl.gov PROG=testProg LVL=Usage NL.EVNT=WriteData SEND.SZ=%u "
            "BLOCK.ID=%llu FILE=/tmp/a%u\n",
            12 + second / 3600, second / 60 % 60, second % 60, us, (unsigned)(i % 4), 10000 + (unsigned)(i % 49332),
            (unsigned long long)i, (unsigned)(i % 10));
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 4 ? strtoull(argv[1], NULL, 10) : 0;
    entry *entries = calloc(count + 1, sizeof *entries);
    FILE *log = argc == 4 ? fopen(argv[3], "w") : NULL;
    if (entries == NULL || log == NULL)
        return 1;
    for (uint64_t i = 0; i < count; i++)
        entries[i].number = i;
    if (strcmp(argv[2], "near") == 0)
        arrive_nearly_in_order(entries, count);
    else
        shuffle(entries, count);
    for (uint64_t i = 0; i < count; i++)
        write_record(log, entries[i].number);
    free(entries);
    return fclose(log) != 0;
}
