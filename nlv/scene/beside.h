/* Shares the work of a frame with a second thread. */
#ifndef NLV_BESIDE_H
#define NLV_BESIDE_H

/*
 * Calls work(user) in this thread. If the second thread is free before this call ends, also calls work(user) in the
 * second thread. Returns when both calls have returned. The two calls share the work through an atomic counter in
 * `user`. Any thread may call this function.
 */
void beside_run(void (*work)(void *user), void *user);

#endif
