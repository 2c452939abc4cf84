/*
 * The kernel's own set of ring buffers, which everybody shares.
 *
 * Before Linux 6.11 the function graph tracer works there only, and in no instance of ours. It is taken only when
 * nobody uses it: no tracer, no events, no filters, nothing in its buffers. What it was set to, as far as that is not
 * what the kernel begins with, is kept in the name of our instance, so that whoever comes after a recorder that was
 * killed can set it back. One thread.
 */
#ifndef NLKERNEL_SHARED_H
#define NLKERNEL_SHARED_H

#include "instance.h"

enum { SHARED_NOTE_SIZE = 80 };

/* What it was before, as a part of an instance's name. */
typedef struct shared_note {
    char text[SHARED_NOTE_SIZE];
} shared_note;

/*
 * Whether it is free to be taken, and what it is set to; *out is then it, to be given back by shared_release. False
 * with who uses it in nl_error_message().
 */
bool shared_find(instance *out, shared_note *note, const tracing *t);

/* Holds it, so that the kernel ends tracing and frees the buffers at once should we be killed. False with the reason.
 */
bool shared_hold(instance *i);

/* Gives it back as it was; i may be zeros. False with the reason when the kernel refuses something. */
bool shared_release(instance *i, const char *note);

/* The same for a recorder that was killed. */
void shared_restore(const tracing *t, const char *note);

#endif
