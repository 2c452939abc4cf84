/*
 * Switches a running recorder on and off. The commands come from nlkernel control or from a file that the recorder
 * watches. Each command is a line:
 *
 *   off | on                  the whole recording
 *   event PATTERN off | on    the recorded events that match PATTERN (choice.h)
 *
 * A file describes a complete state: when the file changes, the recorder switches on all events that the file does not
 * switch off. The recorder ignores blank lines and lines that begin with #. On the socket, the recorder accepts
 * commands only from root and from the user who started it. The socket's credentials identify the sender. The recorder
 * does not check the owner of the file. Not thread-safe.
 */
#ifndef NLKERNEL_CONTROL_H
#define NLKERNEL_CONTROL_H

#include <netlogger.h>

#include <sys/stat.h>

/* The functions that commands call. */
typedef struct control_target {
    void *user;
    size_t event_count;
    /* Returns whether an event matches a pattern. */
    bool (*matches)(void *user, size_t event, const char *pattern);
    /* Switches an event, or all events if `event` is SIZE_MAX. Returns false and sets the error on failure. */
    bool (*set)(void *user, size_t event, bool on);
} control_target;

typedef struct control {
    control_target target;
    bool on, *events_on;
    int fd;           /* the listening socket, or -1 */
    const char *path; /* path of the file, or NULL */
    struct stat seen; /* state of the file when the recorder last applied it; zeros if it has not applied the file or
                         the file did not exist */
} control;

/* Opens the socket, and sets the file to watch. At first, the recording and all events are on. If opening the socket
 * fails, `fd` is -1. Borrows `path`, which may be NULL. The file need not exist. */
void control_open(control *c, const control_target *target, const char *path);
void control_close(control *c);

/* Receives and executes a command, and replies to the sender. Call this function when fd is readable. */
void control_answer(control *c);

/* Applies the file if it has changed. Returns false and sets the error if reading the file fails, or if a line is
 * invalid or its execution fails. Applies the other lines nevertheless. */
bool control_poll_file(control *c);

/* Sends a command to the recorder with a process ID, or to the only recorder if `pid` is 0. Returns false and sets
 * the error on failure. */
bool control_send(int pid, const char *command);

#endif
