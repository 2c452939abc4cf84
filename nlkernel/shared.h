/*
 * The kernel's top-level ring buffers, which all users of ftrace share.
 *
 * Before Linux 6.11, the function graph tracer works only with these buffers. nlkernel uses the buffers only while they
 * are idle: no tracer, event or filter is active, and the buffers are empty. nlkernel stores the clock, buffer_size_kb,
 * buffer_percent and tracing_on in the name of the recorder's instance, so that the next nlkernel can restore these
 * settings if the recorder is killed. The other settings have the kernel's defaults. Not thread-safe.
 */
#ifndef NLKERNEL_SHARED_H
#define NLKERNEL_SHARED_H

#include "instance.h"

enum { SHARED_NOTE_SIZE = 80 };

/* The former settings, in the form that an instance's name contains. */
typedef struct shared_note {
    char text[SHARED_NOTE_SIZE];
} shared_note;

/* Locks the shared buffers, opens them as `out`, and stores their settings in *note. Returns false and sets the error
 * if the buffers are in use. */
bool shared_find(instance *out, shared_note *note, const tracing *t);

/* Switches tracing off, and makes the kernel end tracing if nlkernel is killed. Returns false and sets the error on
 * failure. */
bool shared_hold(instance *i);

/* Restores the settings and unlocks the buffers, if they are locked. Returns false and sets the error on failure. */
bool shared_release(instance *i, const char *note);

/* Restores the settings that a killed recorder changed. `note` comes from the name of the recorder's instance. */
void shared_restore(const tracing *t, const char *note);

#endif
