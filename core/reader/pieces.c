#include "config.h"

#include "reader/pieces.h"

#include "base/memory.h"
#include "reader/value_index.h"

#include <stdlib.h>

static bool is_wanted(const nl_pieces *p, size_t i)
{
    const nl_time_piece *piece = &p->index.pieces[i];
    return piece->max_ns >= p->from_ns && piece->min_ns < p->to_ns &&
           (p->skip == NULL || !p->skip[i] || piece->records == UINT64_MAX);
}

static void choose_rest(nl_pieces *p, const nl_source *source)
{
    p->begin = nl_source_position(source);
    p->end = UINT64_MAX;
    p->lines = 0;
    p->next = p->index.count;
}

void nl_pieces_choose(nl_pieces *p, const nl_source *source, bool midway)
{
    const nl_time_index *index = &p->index;
    const int fd = nl_source_file(source);
    size_t first = p->next;
    if (midway) {
        choose_rest(p, source);
        return;
    }
    p->lines = 0;
    for (; first < index->count && !is_wanted(p, first); first++)
        p->lines += index->pieces[first].records;
    p->next = first;
    while (p->next < index->count && is_wanted(p, p->next))
        p->next++;
    bool all = p->next == index->count;
    if (nl_time_index_holds(index, fd, first) && (all || nl_time_index_holds(index, fd, p->next))) {
        p->begin = nl_time_index_start(index, first);
        p->end = all ? UINT64_MAX : nl_time_index_start(index, p->next);
    } else {
        choose_rest(p, source);
    }
}

bool nl_pieces_are_left(const nl_pieces *p, const nl_source *source)
{
    return p->next < p->index.count && !nl_source_was_replaced(source);
}

void nl_pieces_open(nl_pieces *p, const nl_source *source, int64_t from_ns, int64_t to_ns, const nl_filter *filter)
{
    const char *path = nl_source_path(source);
    p->from_ns = from_ns;
    p->to_ns = to_ns;
    if (path == NULL)
        return;
    if (nl_time_index_read(path, nl_source_file(source), &p->index) == NL_TIME_INDEX_READ &&
        nl_time_index_is_outdated(&p->index, path, nl_source_file(source)))
        nl_time_index_free(&p->index);
    if (filter != NULL && p->index.count > 0)
        p->search = nl_value_search_open(path, filter);
    if (p->search != NULL)
        p->skip = nl_memory_check(calloc(p->index.count, sizeof *p->skip));
}

/* Ends the search. If the search has found no piece to skip, discards its result. */
static void end_search(nl_pieces *p)
{
    if (p->search != NULL && !nl_value_search_has_found(p->search)) {
        free(p->skip);
        p->skip = NULL;
    }
    nl_value_search_close(p->search);
    p->search = NULL;
}

bool nl_pieces_search(nl_pieces *p, const nl_source *source, size_t count)
{
    for (; p->search != NULL && p->skip != NULL && nl_value_search_next(p->search, &p->index, p->skip); count--)
        if (count == 1)
            return false;
    end_search(p);
    nl_pieces_choose(p, source, false);
    return true;
}

void nl_pieces_free(nl_pieces *p)
{
    nl_value_search_close(p->search);
    nl_time_index_free(&p->index);
    free(p->skip);
    *p = (nl_pieces){0};
}
