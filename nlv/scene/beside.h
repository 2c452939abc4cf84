/* Work of a frame that a second thread shares when it has time: most of what a picture is made of does not need the
 * rest. */
#ifndef NLV_BESIDE_H
#define NLV_BESIDE_H

/*
 * Calls work(user) in this thread and, if another one is free before that has returned, a second time in that one.
 * Returns when neither works any more. Both take what is to be done by an atomic counter in user, so that whoever is
 * late finds less of it, or nothing; a second thread that comes too late is not waited for. Any thread may call this.
 */
void beside_run(void (*work)(void *user), void *user);

#endif
