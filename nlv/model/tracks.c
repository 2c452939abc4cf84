#include "config.h"

#include "model/tracks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), whose result does not depend on the byte order. */
static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
    return hash;
}

uint32_t track_key(const char *kind, const char *name)
{
    const uint32_t hash = hash_text(hash_text(hash_text(UINT32_C(2166136261), kind), " "), name);
    return hash != 0 ? hash : 1;
}

bool track_set_has(const track_set *s, uint32_t key)
{
    unsigned i = 0;
    while (i < s->count && s->keys[i] != key)
        i++;
    return i < s->count;
}

void track_set_put(track_set *s, uint32_t key, bool is_in)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->count; i++)
        if (s->keys[i] != key)
            s->keys[kept++] = s->keys[i];
    s->count = kept;
    if (!is_in || key == 0)
        return;
    if (s->count == TRACK_SET_MAX)
        memmove(s->keys, s->keys + 1, --s->count * sizeof *s->keys);
    s->keys[s->count++] = key;
}

void track_set_write(const track_set *s, char text[TRACK_SET_TEXT_SIZE])
{
    *text = '\0';
    for (unsigned i = 0; i < s->count; i++)
        text += sprintf(text, "%s%x", i > 0 ? "." : "", s->keys[i]);
}

void track_set_read(track_set *s, const char *text)
{
    s->count = 0;
    while (*text != '\0') {
        char *end;
        const unsigned long key = strtoul(text, &end, 16);
        if (end > text && key <= UINT32_MAX)
            track_set_put(s, (uint32_t)key, true);
        text = end + strcspn(end, ".");
        text += *text == '.';
    }
}
