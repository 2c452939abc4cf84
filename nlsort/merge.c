#include "config.h"

#include "merge.h"

#include "base/memory.h"

#include <stdlib.h>

typedef struct head {
    item item;
    size_t rank; /* the index of the input; of equal items, the item with the lower rank comes first */
    merge_input *input;
} head;

/* A merge is a binary heap of the next items of the inputs, with the minimum at the root. */
struct merge {
    head *heads;
    size_t count;
    bool root_used; /* merge_next has returned the root's item, and must load the next item of its input */
};

static bool comes_before(const head *a, const head *b)
{
    int order = item_compare(&a->item, &b->item);
    return order != 0 ? order < 0 : a->rank < b->rank;
}

static void sift_down(merge *m, size_t at)
{
    head moving = m->heads[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->count)
            break;
        if (child + 1 < m->count && comes_before(&m->heads[child + 1], &m->heads[child]))
            child++;
        if (!comes_before(&m->heads[child], &moving))
            break;
        m->heads[at] = m->heads[child];
        at = child;
    }
    m->heads[at] = moving;
}

merge *merge_new(merge_input **inputs, size_t count)
{
    merge *m = nl_memory_check(calloc(1, sizeof *m));
    head *heads = nl_memory_check(calloc(count + 1, sizeof *heads));
    m->heads = heads;
    for (size_t i = 0; i < count; i++) {
        head h = {.rank = i, .input = inputs[i]};
        if (inputs[i]->next(inputs[i], &h.item))
            m->heads[m->count++] = h;
        else
            inputs[i]->close(inputs[i]);
    }
    for (size_t i = m->count / 2; i-- > 0;)
        sift_down(m, i);
    return m;
}

bool merge_next(merge *m, item *out)
{
    if (m->root_used) {
        head *root = &m->heads[0];
        if (!root->input->next(root->input, &root->item)) {
            root->input->close(root->input);
            *root = m->heads[--m->count];
        }
        if (m->count > 1)
            sift_down(m, 0);
        m->root_used = false;
    }
    if (m->count == 0)
        return false;
    *out = m->heads[0].item;
    m->root_used = true;
    return true;
}

void merge_free(merge *m)
{
    for (size_t i = 0; i < m->count; i++)
        m->heads[i].input->close(m->heads[i].input);
    free(m->heads);
    free(m);
}
