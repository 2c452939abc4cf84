/* What the files of the model share. All but what locks itself is the loader's: its thread's, or model_load's caller's.
 */
#ifndef NLV_MODEL_MODEL_PRIVATE_H
#define NLV_MODEL_MODEL_PRIVATE_H

#include "model/colors.h"
#include "model/index.h"
#include "model/model.h"
#include "model/source.h"

#include <pthread.h>
#include <stdatomic.h>

struct model {
    pthread_mutex_t turn; /* whoever waits for the lock has it: who has just drawn does not overtake the loader */
    pthread_mutex_t lock; /* of all below but what says otherwise */
    store *store;
    drawing *drawing;
    colors *colors;
    GString *name;
    GPtrArray *files;                /* log_file, the sources', by number */
    GPtrArray *notices;              /* char *: not told yet */
    GPtrArray *fresh;                /* source: to be taken over by the loader */
    nl_filter *filter, *next_filter; /* the latter is to take the former's place */
    atomic_bool filter_changed;
    drawing *next_drawing; /* likewise; NULL: to be found out */
    atomic_bool drawing_changed;
    drawing *next_extra; /* what is drawn beside it */
    atomic_bool extra_changed;
    atomic_bool corrects_clocks, clocks_changed;
    const correction *clocks; /* NULL: times are as they were logged */
    GPtrArray *corrections;   /* that one and former ones, which searches may still go by */
    bool has_expected;
    int64_t expected_from_ns, expected_to_ns; /* of what was not read yet */
    atomic_uint generation;
    atomic_ullong done_bytes, all_bytes;

    /* The loader's own. */
    model_options options;
    size_t memory_max; /* bytes */
    bool is_full;      /* the limit is reached though nothing more can be forgotten: reading has ended */
    bool has_told_missing;
    atomic_uint records_max;
    atomic_bool has_records_max, is_live; /* a source is live when it goes on and is no file */
    program_reading *reading;
    GPtrArray *sources;
    atomic_bool inferred;
    drawing *given, *extra; /* NULL: it is inferred; nothing is drawn beside it */
    bool prepared;
    uint64_t inferred_from; /* bytes */
    char *inferred_text;    /* the drawing then */
    atomic_bool unsettled;
    bool index_tried, index_written, index_settled;
    enum {
        VERIFY_NOTHING,
        VERIFY_INDEX,
        VERIFY_LOG
    } verifying;             /* what is yet to be looked at of the index that was found */
    index_position verified; /* of the index */
    gint64 opened_us;        /* the index, then */
    size_t verified_prints;  /* of the log */
    bool is_sure;            /* that the log is the one that the index is of */
    uint64_t indexed_at;     /* bytes of the log that the index knows */
    gint64 colored_us;
    GQueue kept;      /* kept: what former filters have left of the full one, the latest first */
    store *full;      /* once there was a filter: all that was read before; NULL: not known any more */
    GHashTable *told; /* what was told once, so as not to be told again */
    bool checked;     /* what is odd about the logs was told */
    pthread_t thread;
    bool started;
    atomic_bool stopping;
};

/* ---- model.c ---- */

store *model_new_store(const drawing *d, bool looks_out);

/* Another store and drawing, both taken over; gives the former store, the caller's. */
store *model_replace_store(model *m, store *fresh, drawing *d, colors_mode mode);

/* All is read again, for another drawing, which is taken over. */
void model_begin_anew(model *m, drawing *d, colors_mode mode);

/* The memory of the records: of the store, and of what is kept for filters. */
size_t model_memory(const model *m);

/* While it is locked. */
void model_assign_colors(model *m, colors_mode mode);

/* Tells it, once; text is taken over. */
void model_tell(model *m, char *text);

/* ---- model_subject.c ---- */

/* In all files. */
uint64_t model_bytes_there(const model *m);

/* Adds to d, and gives it back, what is drawn beside it and it does not have itself. */
drawing *model_with_extra(const model *m, drawing *d);

/*
 * Finds out what to draw, when there is enough more of the logs than when it was last done. Returns whether that is
 * something else, for which all is to be read again.
 */
bool model_prepare(model *m);

/* ---- model_filter.c ---- */

void model_take_over_filter(model *m);
void model_take_over_drawing(model *m);

/* There is more, or another drawing, now, of which what was kept does not know. */
void model_forget_full(model *m);

/* The memory of what is kept, without the store that is shown. */
size_t model_kept_memory(const model *m);

/* ---- model_clocks.c ---- */

/* Once all was read. Returns whether it is to be read again. */
bool model_take_over_clocks(model *m);

/* ---- model_index.c ---- */

/* The only log, when it is one whose store is worth keeping; NULL otherwise. */
source *model_indexed_source(const model *m);
void model_try_index(model *m);

/* Looks on whether the index that was found is sound and of this log. Returns whether there is more to be done. */
bool model_verify(model *m);
void model_write_index(model *m);

#endif
