/* An input that is a folder, of which an importer reads what it knows. */
#include "config.h"

#include "pipeline/pipeline_inside.h"

bool pass_reads_folder(const pass *p)
{
    return p->from != NULL && p->from->read_path != NULL;
}

/* Sends what was made so far on its way; the importer goes on with the same sink. */
static void commit_part(sink *s)
{
    pipeline *p = s->drain_user;
    chunk *c = pipeline_filling(p);
    if (p->own->kind->flush != NULL)
        p->own->kind->flush(p->own, s);
    pipeline_commit(p, c);
    pipeline_in_place(p);
    s->stopped = p->stopped || p->failed;
}

bool pipeline_read_folder(pipeline *p, const char *path)
{
    pipeline_write_edge(p, p->pass->to->begin);
    p->begun = true;
    sink *s = &pipeline_in_place(p)->s;
    s->drain = commit_part;
    s->drain_user = p;
    bool good = p->pass->from->read_path(path, s);
    commit_part(s);
    s->drain = NULL;
    if (!good)
        program_error("%s", nl_error_message());
    return good;
}
