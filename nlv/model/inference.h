/*
 * What is drawn: a given drawing, or one that is inferred from samples of the logs, and loadlines that are drawn
 * besides. The module owns these drawings and knows how much of the logs the inference has seen. Caller: the loader.
 */
#ifndef NLV_INFERENCE_H
#define NLV_INFERENCE_H

#include "model/source.h"
#include "requests/drawing.h"

typedef struct inference inference;

/* given, copied, is what to draw; NULL: it is inferred. */
inference *inference_new(const drawing *given);
void inference_free(inference *f);

/* Draws something else: d, taken over; NULL: it is inferred. */
void inference_set_given(inference *f, drawing *d);

/* Draws other loadlines besides; extra is taken over. The inference ignores its quiet events. */
void inference_set_extra(inference *f, drawing *extra);

bool inference_is_active(const inference *f);

/* The given drawing, or an empty one, with the extra loadlines; the caller's. */
drawing *inference_first_drawing(const inference *f);

/* The drawing is known, from an index of bytes of the logs or from an earlier reading (0). */
void inference_settle(inference *f, uint64_t bytes);

/* The logs are read again, and so are samples. */
void inference_restart(inference *f);

typedef struct time_range {
    bool is_known;
    int64_t from_ns, to_ns;
} time_range;

/*
 * Takes samples of the logs (source *), if there is enough more of them than at the last time. Sets *range to their
 * times. Returns whether it took any; then *d is the drawing that was inferred, the caller's, or NULL if it is the same
 * as before.
 */
bool inference_sample(inference *f, const GPtrArray *sources, time_range *range, drawing **d);

#endif
