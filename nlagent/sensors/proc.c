#include "config.h"

#include "sensors/sensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char message[160];

const char *proc_error(void)
{
    return message;
}

void proc_set_error(const char *path, const char *what)
{
    snprintf(message, sizeof message, "%s: %s", path, what);
}

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
        proc_set_error(path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return false;
    buffer->data[buffer->size] = '\0';
    return true;
}

/* The first line that begins with name; NULL when there is none. */
static const char *find_line(const char *text, const char *name)
{
    size_t size = strlen(name);
    while (text != NULL && strncmp(text, name, size) != 0) {
        text = strchr(text, '\n');
        text = text == NULL ? NULL : text + 1;
    }
    return text;
}

bool proc_find(const char *text, const char *name, uint64_t *value)
{
    const char *line = find_line(text, name);
    if (line == NULL)
        return false;
    char *end;
    const char *number = line + strlen(name);
    *value = strtoull(number, &end, 10);
    return end != number;
}

bool proc_find_column(const char *text, const char *table, const char *name, uint64_t *value)
{
    const char *names = find_line(text, table);
    const char *values = names == NULL ? NULL : strchr(names, '\n');
    if (values == NULL || strncmp(values + 1, table, strlen(table)) != 0)
        return false;
    const char *end = values;
    names += strlen(table);
    values += 1 + strlen(table);
    while (names < end) {
        names += strspn(names, " ");
        values += strspn(values, " ");
        size_t size = strcspn(names, " \n");
        if (size == strlen(name) && strncmp(names, name, size) == 0) {
            *value = strtoull(values, NULL, 10);
            return true;
        }
        names += size;
        values += strcspn(values, " \n");
    }
    return false;
}

uint64_t proc_rise(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}
