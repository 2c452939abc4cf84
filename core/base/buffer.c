#include "base/memory.h"
#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

bool nl_buffer_reserve(nl_buffer *buffer, size_t extra)
{
    if (buffer->capacity - buffer->size >= extra)
        return true;
    if (extra > SIZE_MAX / 2 - buffer->size)
        return nl_memory_failed() == NL_OK;
    size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
    while (capacity - buffer->size < extra)
        capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (data == NULL)
        return nl_memory_failed() == NL_OK;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

bool nl_buffer_append(nl_buffer *buffer, const void *data, size_t size)
{
    if (size == 0)
        return true;
    if (!nl_buffer_reserve(buffer, size))
        return false;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    return true;
}

void nl_buffer_free(nl_buffer *buffer)
{
    free(buffer->data);
    *buffer = (nl_buffer){0};
}
