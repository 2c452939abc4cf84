#include "config.h"

#include "archive/query.h"

#include "archive/pushdown.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>

enum { DRAIN_SIZE = 1 << 20 };

typedef struct passing {
    const exporter_kind *kind;
    void *shared;
    exporter *e;
    sink s;
    output *out;
    nl_record *record;
    uint64_t unreadable;
    bool failed;
} passing;

static void drain(sink *s)
{
    passing *p = s->drain_user;
    if (p->failed || s->bytes.size == 0)
        return;
    p->failed = p->kind->learn != NULL ? !p->kind->learn(p->shared, (nl_string){s->bytes.data, s->bytes.size})
                                       : !output_write(p->out, s->bytes.data, s->bytes.size);
    s->bytes.size = 0;
}

static bool query_take(void *user, const nl_string *columns)
{
    passing *p = user;
    bool typed;
    if (row_unpack(p->record, columns[0], &typed) != NL_OK) {
        p->unreadable++;
        return true;
    }
    sink_put(&p->s, p->record, typed);
    if (p->s.bytes.size >= DRAIN_SIZE) {
        if (p->kind->flush != NULL)
            p->kind->flush(p->e, &p->s);
        drain(&p->s);
    }
    return !p->failed && !program_was_stopped();
}

static char *make_sql(const query *q)
{
    nl_buffer sql = {0};
    store_add(&sql, "SELECT packed FROM entry WHERE 1 = 1");
    if (q->from_ns != INT64_MIN)
        store_add(&sql, " AND time_ns >= %" PRId64, q->from_ns);
    if (q->to_ns != INT64_MAX)
        store_add(&sql, " AND time_ns < %" PRId64, q->to_ns);
    pushdown(q->where, &sql);
    store_add(&sql, " ORDER BY time_ns, id");
    nl_buffer_append(&sql, "", 1);
    return sql.data;
}

static bool run_pass(store *s, const query *q, passing *p, const char *sql)
{
    p->e = exporter_open(p->kind, p->shared);
    p->s = (sink){.out = p->e, .where = q->where, .drain = drain, .drain_user = p};
    p->record = nl_record_new();
    if (p->kind->begin != NULL)
        p->kind->begin(p->e, &p->s);
    bool good = s->kind->select(s, sql, query_take, p) == NL_OK;
    if (!good)
        program_print_error();
    if (p->kind->flush != NULL)
        p->kind->flush(p->e, &p->s);
    if (p->kind->end != NULL)
        p->kind->end(p->e, &p->s);
    drain(&p->s);
    exporter_close(p->e);
    nl_record_free(p->record);
    nl_buffer_free(&p->s.bytes);
    nl_buffer_free(&p->s.report_text);
    return good && !p->failed;
}

bool query_run(store *s, const query *q, output *out)
{
    void *shared = NULL;
    if (q->to->share != NULL && (shared = q->to->share(q->drawing)) == NULL)
        return false;
    char *sql = make_sql(q);
    passing first = {.kind = q->to->first_pass, .shared = shared},
            main_pass = {.kind = q->to, .shared = shared, .out = out};
    bool good = first.kind == NULL || run_pass(s, q, &first, sql);
    good = good && run_pass(s, q, &main_pass, sql);
    if (q->to->unshare != NULL)
        q->to->unshare(shared);
    if (!q->quiet)
        losses_report(q->to->name, main_pass.s.losses);
    if (main_pass.unreadable > 0)
        program_error("%" PRIu64 " unreadable record%s; the database is damaged", main_pass.unreadable,
                      nl_plural(main_pass.unreadable));
    free(sql);
    return good && main_pass.unreadable == 0;
}
