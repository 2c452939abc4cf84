#include "config.h"

#include "log/scratch.h"

#include "base/memory.h"
#include "base/pages.h"
#include "base/thread.h"

#include <stdlib.h>

__thread nl_scratch *nl_scratch_here;
__thread nl_scratch_use nl_scratch_used;

static void free_scratch(void *user)
{
    nl_scratch *s = user;
    nl_scratch_used = (nl_scratch_use){true, true};
    nl_scratch_here = NULL;
    nl_format_cache_free(&s->cache);
    nl_buffer_free(&s->bytes);
    if (s->fields != s->usual)
        free(s->fields);
    nl_record_free(s->record);
    nl_buffer_free(&s->text);
    nl_pages_free(s, sizeof *s);
    nl_scratch_used = (nl_scratch_use){false, false};
}

NL_THREAD_KEY(scratch_key, free_scratch)

nl_scratch *nl_scratch_make(void)
{
    nl_scratch *s = nl_pages_new(sizeof *s);
    if (s == NULL) {
        nl_memory_failed();
        return NULL;
    }
    s->fields = s->usual;
    s->field_capacity = NL_FIELDS_MAX;
    scratch_key_set(s);
    return nl_scratch_here = s;
}

bool nl_scratch_want_fields(nl_scratch *s, size_t count)
{
    if (count <= s->field_capacity)
        return true;
    nl_field *fields = nl_memory_check(reallocarray(s->fields != s->usual ? s->fields : NULL, count, sizeof *fields));
    if (fields == NULL)
        return false;
    s->fields = fields;
    s->field_capacity = count;
    return true;
}
