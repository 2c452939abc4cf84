/*
 * A queue that passes decoded records from other threads to the model. Because the records of agents' sensors pass
 * through a feed, nlv decodes them only once. The feed owns copies of the records.
 *
 * Any thread may call these functions. A feed has a reference count, because the threads that fill it may outlive the
 * model.
 */
#ifndef NLV_FEED_H
#define NLV_FEED_H

#include <netlogger.h>

typedef struct feed feed;

feed *feed_new(void);
feed *feed_ref(feed *f);
void feed_unref(feed *f);

/* Adds a copy of a record. Waits while the queue is full. Returns false if the feed is closed. */
bool feed_put(feed *f, const nl_record *record);

/* Removes the oldest record, which the caller frees with nl_record_free. Returns NULL if the queue is empty. */
nl_record *feed_take(feed *f);

bool feed_is_empty(feed *f);

/* Closes the feed, and wakes every feed_put that waits. */
void feed_close(feed *f);

#endif
