#define _GNU_SOURCE 1

#include "path.h"

#include <stdlib.h>
#include <string.h>

struct path {
    path_settings settings;
    path_counts counts;
    uint64_t chance;
    int64_t free_ns; /* time at which the link will have sent all waiting packets */
    int64_t last_ns; /* arrival time of the last packet that was not reordered */
    path_packet **heap;
    size_t count, capacity;
};

path *path_new(const path_settings *settings)
{
    path *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->settings = *settings;
    p->chance = settings->seed * 0x9e3779b97f4a7c15u + 1;
    p->free_ns = INT64_MIN;
    p->last_ns = INT64_MIN;
    return p;
}

void path_free(path *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->count; i++)
        free(p->heap[i]);
    free(p->heap);
    free(p);
}

/* Returns a random number in [0, 1), from Vigna's xorshift64*. */
static double path_draw(path *p)
{
    p->chance ^= p->chance >> 12;
    p->chance ^= p->chance << 25;
    p->chance ^= p->chance >> 27;
    return (double)(p->chance * 0x2545f4914f6cdd1du >> 11) / 9007199254740992.0;
}

/* ---- the queue: a heap, ordered by arrival time and then by serial number ---- */

static bool before(const path_packet *a, const path_packet *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

static bool push(path *p, path_packet *packet)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity > 0 ? 2 * p->capacity : 256;
        path_packet **heap = realloc(p->heap, capacity * sizeof *heap);
        if (heap == NULL)
            return false;
        p->heap = heap;
        p->capacity = capacity;
    }
    size_t at = p->count++;
    for (; at > 0 && before(packet, p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = packet;
    return true;
}

static path_packet *pop(path *p)
{
    path_packet *first = p->heap[0], *last = p->heap[--p->count];
    size_t at = 0;
    for (size_t child = 1; child < p->count; child = 2 * at + 1) {
        if (child + 1 < p->count && before(p->heap[child + 1], p->heap[child]))
            child++;
        if (!before(p->heap[child], last))
            break;
        p->heap[at] = p->heap[child];
        at = child;
    }
    p->heap[at] = last;
    return first;
}

/* ---- packets ---- */

/* Returns the time at which the link will have sent the packet, or INT64_MIN if the link's buffer is full. */
static int64_t send_at(path *p, size_t size, int64_t now_ns)
{
    const path_settings *s = &p->settings;
    if (s->rate <= 0)
        return now_ns;
    int64_t begins_ns = p->free_ns > now_ns ? p->free_ns : now_ns;
    double waiting = (double)(begins_ns - now_ns) / 1e9 * s->rate / 8;
    if (s->buffer_bytes > 0 && waiting + (double)size > (double)s->buffer_bytes)
        return INT64_MIN;
    p->free_ns = begins_ns + (int64_t)((double)size * 8e9 / s->rate + 0.5);
    return s->policed ? now_ns : p->free_ns;
}

static int64_t arrives_at(path *p, int64_t sent_ns)
{
    const path_settings *s = &p->settings;
    if (s->overtaking > 0 && path_draw(p) < s->overtaking) {
        p->counts.overtook++;
        return sent_ns;
    }
    int64_t due_ns = sent_ns + s->delay_ns;
    if (s->jitter_ns > 0)
        due_ns += (int64_t)((2 * path_draw(p) - 1) * (double)s->jitter_ns);
    if (due_ns < sent_ns)
        due_ns = sent_ns;
    if (due_ns < p->last_ns)
        due_ns = p->last_ns;
    p->last_ns = due_ns;
    return due_ns;
}

bool path_put(path *p, const void *bytes, size_t size, int64_t now_ns)
{
    p->counts.packets++;
    p->counts.bytes += size;
    int64_t sent_ns = send_at(p, size, now_ns);
    if (sent_ns == INT64_MIN) {
        p->counts.overflowed++;
        return true;
    }
    if (p->settings.loss > 0 && path_draw(p) < p->settings.loss) {
        p->counts.lost++;
        return true;
    }
    path_packet *packet = malloc(sizeof *packet + size);
    if (packet != NULL) {
        packet->due_ns = arrives_at(p, sent_ns);
        packet->serial = p->counts.packets;
        packet->size = size;
        memcpy(packet->bytes, bytes, size);
        if (push(p, packet))
            return true;
        free(packet);
    }
    p->counts.overflowed++;
    return false;
}

int64_t path_next_ns(const path *p)
{
    return p->count > 0 ? p->heap[0]->due_ns : INT64_MAX;
}

path_packet *path_take(path *p, int64_t now_ns)
{
    if (path_next_ns(p) > now_ns)
        return NULL;
    p->counts.arrived++;
    p->counts.late += now_ns - path_next_ns(p) > PATH_LATE_NS;
    return pop(p);
}

path_counts path_count(const path *p)
{
    return p->counts;
}
