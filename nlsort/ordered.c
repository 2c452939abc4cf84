#include "config.h"

#include "ordered.h"

#include "item.h"
#include "load.h"
#include "table.h"
#include "base/memory.h"

#include <stdlib.h>

struct ordered_log {
    cursor base;
    const char *path;
    load *l;   /* a text file; NULL for other logs */
    input *in; /* any other log; NULL for text files */
    table *t;
    size_t piece;               /* index of the next piece of the table */
    bool ended;                 /* the table contains all remaining lines */
    uint64_t records;           /* number of records before the current piece */
    int64_t time_ns;            /* time of the last record */
    ordered_disorder *disorder; /* NULL after the first report */
    void *user;
};

ordered_log *ordered_open(input_settings *settings, const char *path, size_t memory, bool reverse,
                          ordered_disorder *disorder, void *user)
{
    load *l = settings->where.filter == NULL ? load_open(settings, path) : NULL;
    input *in = l == NULL ? input_open(settings, path) : NULL;
    if (l == NULL && in == NULL)
        return NULL;
    ordered_log *o = nl_memory_check(calloc(1, sizeof *o));
    *o = (ordered_log){
        .path = path, .l = l, .in = in, .t = table_new(memory, 0, reverse), .disorder = disorder, .user = user};
    return o;
}

void ordered_close(ordered_log *o)
{
    if (o->l != NULL)
        load_close(o->l);
    else
        input_close(o->in);
    table_free(o->t);
    free(o);
}

/* Adds records to the table. Returns true at the end of the log. */
static bool read_records(ordered_log *o)
{
    nl_string key, line;
    while (!table_is_full(o->t)) {
        if (!input_next(o->in, &key, &line))
            return true;
        table_add(o->t, item_time(key.data, key.size, o->t->reverse), (nl_string){line.data, line.size - 1});
    }
    return false;
}

static void ordered_check(ordered_log *o, const piece *p)
{
    const nl_scanned_line *lines = p->list->lines + p->first;
    int64_t before = o->records > 0 ? o->time_ns : INT64_MIN;
    bool is_last = o->ended && o->piece == o->t->piece_count;
    if (o->disorder == NULL || (p->ordered && p->minimum >= before))
        return;
    if (is_last && p->count == 1 && o->l != NULL && load_is_unterminated(o->l))
        return; /* the last line does not end with a newline, so its time may be incomplete and proves no disorder */
    size_t i = 0;
    for (; lines[i].time_ns >= before; i++)
        before = lines[i].time_ns;
    const char *text = o->t->text;
    o->disorder(o->user, o->path, o->records + i + 1,
                (nl_string){text + nl_line_offset(lines[i]), table_line_size(text, lines[i])});
    o->disorder = NULL;
}

static bool next_piece(cursor *base)
{
    ordered_log *o = (ordered_log *)base;
    table *t = o->t;
    while (o->piece == t->piece_count) {
        if (o->ended)
            return false;
        table_clear(t);
        o->piece = 0;
        o->ended = o->l != NULL ? load_into(o->l, t) : read_records(o);
    }
    const piece *p = &t->pieces[o->piece++];
    ordered_check(o, p);
    base->lines = p->list->lines + p->first;
    base->count = p->count;
    base->next = 0;
    base->text = t->text;
    o->records += p->count;
    o->time_ns = base->lines[p->count - 1].time_ns;
    return true;
}

cursor *ordered_cursor(ordered_log *o, size_t rank)
{
    o->base.rank = rank;
    o->base.more = next_piece;
    return &o->base;
}
