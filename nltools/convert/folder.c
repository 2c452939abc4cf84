/* An input that is a folder, of which an importer reads what it knows. */
#include "config.h"

#include "convert/pipeline_inside.h"

#include <limits.h>
#include <sys/stat.h>

bool pipeline_folder_path(const char *name, char *path, size_t size)
{
    struct stat what;
    nl_url *url = nl_url_parse(name);
    bool is_folder = url != NULL && url->scheme == NL_SCHEME_FILE && stat(url->path, &what) == 0 &&
                     S_ISDIR(what.st_mode) && (size_t)snprintf(path, size, "%s", url->path) < size;
    nl_url_free(url);
    return is_folder;
}

bool pass_reads_folder(const pass *p)
{
    char path[PATH_MAX];
    return pipeline_folder_path(p->url, path, sizeof path);
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
    if (p->pass->from == NULL)
        p->pass->from = importer_kind_find("ctf");
    if (p->pass->from == NULL || p->pass->from->read_path == NULL) {
        const char *missing = p->pass->from == NULL ? format_missing("ctf") : NULL;
        if (missing != NULL)
            program_error("%s: it is a folder, as CTF traces are, and this nlconv was built without %s", p->pass->url,
                          missing);
        else
            program_error("%s: it is a folder, and %s is read from files", p->pass->url, p->pass->from->name);
        return false;
    }
    pipeline_write_edge(p, p->pass->to->begin);
    p->begun = true;
    sink *s = &pipeline_in_place(p)->s;
    s->drain = commit_part;
    s->drain_user = p;
    bool good = p->pass->from->read_path(path, s);
    commit_part(s);
    s->drain = NULL;
    return good;
}
