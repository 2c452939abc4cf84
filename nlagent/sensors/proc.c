#include "config.h"

#include "sensors/sensor.h"
#include "base/error.h"
#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- fields ---- */

nl_record *record_begin(measurement *m, const char *event)
{
    nl_record_clear(m->record);
    nl_record_set_level(m->record, NL_SYSTEM);
    nl_record_set_event(m->record, event, strlen(event));
    return m->record;
}

void record_end(measurement *m)
{
    m->emit(m);
}

void add_rounded(nl_record *record, const char *name, double value, int decimals)
{
    static const double powers[] = {1, 10, 100, 1000, 1e4, 1e5, 1e6};
    nl_record_add_double(record, name, round(value * powers[decimals]) / powers[decimals]);
}

void add_rate(nl_record *record, const char *name, uint64_t rise, double seconds)
{
    add_rounded(record, name, (double)rise / seconds, 1);
}

void add_text(nl_record *record, const char *name, const char *value)
{
    nl_record_add_string(record, name, value, strlen(value));
}

/* ---- /proc ---- */

bool proc_read(const char *path, nl_buffer *buffer)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    buffer->size = 0;
    if (fd >= 0) {
        do {
            nl_buffer_reserve(buffer, 4096);
            got = read(fd, buffer->data + buffer->size, buffer->capacity - buffer->size - 1);
            buffer->size += got > 0 ? (size_t)got : 0;
        } while (got > 0 || (got < 0 && errno == EINTR));
    }
    if (got < 0)
        nl_error_set_errno("%s", path);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return false;
    buffer->data[buffer->size] = '\0';
    return true;
}

const char *proc_next_line(const char *at)
{
    at = strchr(at, '\n');
    return at == NULL || at[1] == '\0' ? NULL : at + 1;
}

/* Returns the first line that begins with `name`, or NULL. */
static const char *find_line(const char *text, const char *name)
{
    size_t size = strlen(name);
    while (text != NULL && strncmp(text, name, size) != 0)
        text = proc_next_line(text);
    return text;
}

static bool parse_number(const char *at, uint64_t *value)
{
    char *end;
    *value = strtoull(at, &end, 10);
    return end != at;
}

bool proc_find(const char *text, const char *name, uint64_t *value)
{
    const char *line = find_line(text, name);
    return line != NULL && parse_number(line + strlen(name), value);
}

/* Finds the value in the column `name`. `names` and `values` do not include the name of the table. Returns false if
 * there is no such column. */
static bool column(const char *names, const char *values, const char *name, uint64_t *value)
{
    size_t wanted = strlen(name);
    while (*names != '\n' && *names != '\0') {
        names += strspn(names, " ");
        values += strspn(values, " ");
        size_t size = strcspn(names, " \n");
        if (size == wanted && strncmp(names, name, size) == 0)
            return parse_number(values, value);
        names += size;
        values += strcspn(values, " \n");
    }
    return false;
}

bool proc_find_column(const char *text, const char *table, const char *name, uint64_t *value)
{
    size_t size = strlen(table);
    const char *head = find_line(text, table), *line = head == NULL ? NULL : proc_next_line(head);
    return line != NULL && strncmp(line, table, size) == 0 && column(head + size, line + size, name, value);
}

size_t proc_numbers(const char **at, uint64_t *values, size_t max)
{
    size_t count = 0;
    const char *from = *at;
    while (count < max) {
        while (*from == ' ' || *from == '\t')
            from++;
        if (*from < '0' || *from > '9')
            break;
        uint64_t value = 0;
        while (*from >= '0' && *from <= '9')
            value = value * 10 + (uint64_t)(*from++ - '0');
        values[count++] = value;
    }
    *at = from;
    return count;
}

uint64_t proc_rise(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

/* ---- counters ---- */

struct counters_row {
    char key[COUNTERS_KEY_SIZE];
    unsigned round; /* number of the last measurement that contained the object */
    uint64_t values[COUNTERS_MAX];
};

void counters_begin(counters *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].round == c->round)
            c->rows[kept++] = c->rows[i];
    c->count = kept;
    c->round++;
    c->next = 0;
}

static counters_row *find_row(counters *c, const char *key)
{
    for (size_t i = 0; i < c->count; i++) {
        size_t place = (c->next + i) % c->count;
        if (strcmp(c->rows[place].key, key) == 0) {
            c->next = place + 1 < c->count ? place + 1 : 0;
            return &c->rows[place];
        }
    }
    return NULL;
}

static counters_row *proc_add_row(counters *c, const char *key)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity * 2 + 8;
        c->rows = nl_memory_check(realloc(c->rows, c->capacity * sizeof *c->rows));
    }
    counters_row *row = &c->rows[c->count++];
    snprintf(row->key, sizeof row->key, "%s", key);
    return row;
}

bool counters_rise(counters *c, const char *key, const uint64_t *now, size_t count, uint64_t *rise)
{
    char cut[COUNTERS_KEY_SIZE];
    snprintf(cut, sizeof cut, "%s", key);
    counters_row *row = find_row(c, cut);
    bool known = row != NULL;
    if (!known)
        row = proc_add_row(c, cut);
    for (size_t i = 0; i < count && known; i++)
        rise[i] = proc_rise(row->values[i], now[i]);
    memcpy(row->values, now, count * sizeof *now);
    row->round = c->round;
    return known;
}
