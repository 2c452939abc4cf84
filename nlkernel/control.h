/*
 * Switches a running recorder on and off, on request of nlkernel control or of a file that the recorder watches.
 * Commands are lines:
 *
 *   off | on                  the whole recording
 *   event PATTERN off | on    the recorded events that match PATTERN (choice.h)
 *
 * A file describes a state: whenever it changes, all events that its lines do not switch off are on. Blank lines and
 * lines that begin with # are ignored. The recorder accepts commands only from the user who started it and from root,
 * and identifies users by the credentials of the socket. One thread.
 */
#ifndef NLKERNEL_CONTROL_H
#define NLKERNEL_CONTROL_H

#include <netlogger.h>

#include <sys/stat.h>

/* The object that commands switch. */
typedef struct control_target {
    void *user;
    size_t event_count;
    /* Returns whether an event matches a pattern. */
    bool (*matches)(void *user, size_t event, const char *pattern);
    /* Switches an event, or all events with SIZE_MAX. Returns false and sets the error on failure. */
    bool (*set)(void *user, size_t event, bool on);
} control_target;

typedef struct control {
    control_target target;
    bool on, *events_on;
    int fd;           /* the listening socket, or -1 */
    const char *path; /* path of the file, or NULL */
    struct stat seen; /* state of the file when it was last applied; zeros: never, or the file did not exist */
} control;

/* Starts with everything on. path may be NULL, and the file need not exist. */
void control_open(control *c, const control_target *target, const char *path);
void control_close(control *c);

/* Executes a command. Call it when fd is readable. */
void control_answer(control *c);

/* Applies the file if it has changed. Returns false and sets the error if a line could not be executed. */
bool control_poll_file(control *c);

/* Sends a command to the recorder with a process ID (0: the only recorder). Returns false and sets the error on
 * failure.
 */
bool control_send(int pid, const char *command);

#endif
