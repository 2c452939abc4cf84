#include "config.h"

#include "requests/program_families.h"

#include <glib.h>

enum {
    PROGRAMS_MAX = 1 << 16,
    VISITED_MAX = 64, /* maximum number of programs that a request visits, if the module learns from the request */
};

/* A program is separate if it shares more than this part of its requests with other programs of its family. */
static const double shared_max = 0.1;

typedef struct program_use {
    uint32_t requests;           /* number of requests that visit the program */
    uint32_t shared, all_shared; /* numbers of these that visit another program with the same request_event.family, and
                                    with the same request_event.families */
} program_use;

struct program_families {
    GArray *uses; /* program_use, by number of the program */
    bool has_learned;
};

program_families *program_families_new(void)
{
    program_families *f = g_new0(program_families, 1);
    f->uses = g_array_new(FALSE, TRUE, sizeof(program_use));
    return f;
}

void program_families_free(program_families *f)
{
    if (f == NULL)
        return;
    g_array_free(f->uses, TRUE);
    g_free(f);
}

static program_use *use_of(program_families *f, uint32_t program)
{
    if (program >= f->uses->len)
        g_array_set_size(f->uses, program + 1);
    return &g_array_index(f->uses, program_use, program);
}

/* Adds the event's program to the programs of a request, unless it is known. Returns the new number of programs. */
static uint32_t add_program(const request_event *visited[VISITED_MAX + 1], uint32_t count, const request_event *e)
{
    for (uint32_t i = 0; i < count; i++)
        if (visited[i]->program == e->program)
            return count;
    visited[count] = e;
    return count + 1;
}

void program_families_learn(program_families *f, const request_event *events, size_t count)
{
    const request_event *visited[VISITED_MAX + 1]; /* an event of each program */
    uint32_t found = 0;
    f->has_learned = true;
    for (size_t i = 0; i < count && found <= VISITED_MAX; i++)
        if (events[i].families != 0 && events[i].program < PROGRAMS_MAX)
            found = add_program(visited, found, &events[i]);
    for (uint32_t i = 0; i < found && found <= VISITED_MAX; i++) {
        bool shares = false, shares_all = false;
        for (uint32_t k = 0; k < found; k++) {
            shares = shares || (k != i && visited[k]->family == visited[i]->family);
            shares_all = shares_all || (k != i && visited[k]->families == visited[i]->families);
        }
        program_use *use = use_of(f, visited[i]->program);
        use->requests++;
        use->shared += shares;
        use->all_shared += shares_all;
    }
}

uint64_t program_families_kind(const program_families *f, const request_event *e)
{
    const uint64_t is_family = UINT64_C(1) << 63; /* no program has such a number */
    if (e->families == 0 || !f->has_learned)
        return request_event_kind(e);
    const program_use *use = e->program < f->uses->len ? &g_array_index(f->uses, program_use, e->program) : NULL;
    if (use == NULL || use->all_shared <= shared_max * use->requests)
        return is_family | (uint64_t)e->families << 32 | e->name;
    return use->shared <= shared_max * use->requests ? is_family | (uint64_t)e->family << 32 | e->name
                                                     : request_event_kind(e);
}
