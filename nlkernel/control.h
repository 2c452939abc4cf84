/*
 * What a recorder is told while it records: by nlkernel control, and by a file that it watches. Commands are lines:
 *
 *   off | on                  all of it
 *   event PATTERN off | on    some of the events that are recorded: sched:*, as -e has it
 *
 * A file says what holds: what is in none of its lines is on, and each time that it has changed all is as it says.
 * Blank lines and those that begin with # are passed over. Of the others who may send commands the kernel vouches for:
 * the user who records, and root. One thread.
 */
#ifndef NLKERNEL_CONTROL_H
#define NLKERNEL_CONTROL_H

#include <netlogger.h>

#include <sys/stat.h>

/* What is switched. */
typedef struct control_target {
    void *user;
    size_t event_count;
    const char *(*event_name)(void *user, size_t event); /* SYSTEM:EVENT */
    /* Switches one event, or all with SIZE_MAX. False with the reason in nl_error_message(). */
    bool (*set)(void *user, size_t event, bool on);
} control_target;

typedef struct control {
    control_target target;
    bool on, *events_on;
    int fd;           /* who sends commands connects here; -1 */
    const char *path; /* of the file; NULL */
    struct stat seen; /* as it was applied last; zeros: not yet, or it was not there */
} control;

/* Begins, with all on. path may be NULL, and need not exist. */
void control_open(control *c, const control_target *target, const char *path);
void control_close(control *c);

/* Takes what somebody sends; call it when fd is readable. */
void control_answer(control *c);

/* Looks at the file; false with the reason when something in it could not be done. */
bool control_look(control *c);

/* Sends a command to the recorder that is process pid, 0: the only one that runs. Its answer, to be freed; *good tells
 * whether it has done it. NULL with the reason in nl_error_message(). */
char *control_send(int pid, const char *command, bool *good);

#endif
