#include "config.h"

#include "used_streams.h"

#include "base/memory.h"
#include "output/outputs.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 4 };

void used_streams_note(used_streams *used, const unsigned char name[16])
{
    for (size_t i = 0; i < used->count; i++)
        if (memcmp(used->names[i], name, sizeof *used->names) == 0)
            return;
    if (used->count == used->capacity && used->capacity < USED_STREAMS_MAX) {
        used->capacity = used->capacity == 0 ? CAPACITY_MIN : 2 * used->capacity;
        used->names = nl_memory_check(realloc(used->names, used->capacity * sizeof *used->names));
    }
    size_t at = used->count < used->capacity ? used->count++ : used->next++ % USED_STREAMS_MAX;
    memcpy(used->names[at], name, sizeof *used->names);
}

void used_streams_touch(const used_streams *used)
{
    for (size_t i = 0; i < used->count; i++)
        outputs_touch_stream(used->names[i]);
}

size_t used_streams_size(const used_streams *used)
{
    return used->capacity > USED_STREAMS_FREE ? used->capacity * sizeof *used->names : 0;
}

void used_streams_free(used_streams *used)
{
    free(used->names);
}
