#include "config.h"

#include "stat/subject.h"

#include "requests/infer.h"
#include "program/program.h"
#include "stat/text_key.h"

#include <string.h>

struct subject {
    drawing *drawing; /* NULL until it is known */
    const char *const *ids;
    subject_user user;
    GPtrArray *sample;  /* nl_record, until then */
    GHashTable *events; /* that occur in the sample, where it was found from that; otherwise NULL */
    uint64_t late;
};

static void free_record(gpointer record)
{
    nl_record_free(record);
}

subject *subject_new(const char *config, const char *const *ids, subject_user user)
{
    subject *s = g_new0(subject, 1);
    s->ids = ids;
    s->user = user;
    s->sample = g_ptr_array_new_with_free_func(free_record);
    if (config != NULL) {
        s->drawing = drawing_read(config);
        if (s->drawing == NULL)
            program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
        user.begin(user.user, s->drawing);
    }
    return s;
}

void subject_free(subject *s)
{
    if (s == NULL)
        return;
    drawing_free(s->drawing);
    g_ptr_array_free(s->sample, TRUE);
    if (s->events != NULL)
        g_hash_table_destroy(s->events);
    g_free(s);
}

static void find_drawing(subject *s)
{
    trace *t = trace_new();
    s->events = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    for (guint i = 0; i < s->sample->len; i++) {
        const nl_record *record = g_ptr_array_index(s->sample, i);
        trace_add(t, record);
        if (record->event.data != NULL)
            g_hash_table_add(s->events, text_key_new(record->event));
    }
    trace_sort(t);
    s->drawing = infer_drawing_by(t, s->ids);
    trace_free(t);
}

void subject_settle(subject *s)
{
    if (s->drawing != NULL)
        return;
    find_drawing(s);
    s->user.begin(s->user.user, s->drawing);
    for (guint i = 0; i < s->sample->len; i++)
        s->user.take(s->user.user, g_ptr_array_index(s->sample, i));
    g_ptr_array_set_size(s->sample, 0);
}

/* An event that came after the sample belongs to no lifeline that was found in it. */
static void note_late(subject *s, const nl_record *record)
{
    if (s->events != NULL && record->event.data != NULL)
        s->late += !g_hash_table_contains(s->events, &record->event);
}

void subject_add(subject *s, const nl_record *record)
{
    if (s->drawing != NULL) {
        note_late(s, record);
        s->user.take(s->user.user, record);
        return;
    }
    nl_record *kept = nl_record_new();
    nl_record_copy(kept, record);
    g_ptr_array_add(s->sample, kept);
    if (s->sample->len == SUBJECT_SAMPLE)
        subject_settle(s);
}

uint64_t subject_late(const subject *s)
{
    return s->late;
}
