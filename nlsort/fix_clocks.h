/*
 * nlsort --fix-clocks: what comes is read once, learnt from, and kept in a file without a name; then, the clocks being
 * known, read again from there with its times corrected.
 */
#ifndef NLSORT_FIX_CLOCKS_H
#define NLSORT_FIX_CLOCKS_H

#include "input.h"

#include "timekeeping/correction.h"

typedef struct fix_options {
    correction_options what;
    const char **ids;
    correction_message *messages;
    size_t id_room, message_room;
} fix_options;

/* FIELD,FIELD,... and SENT:RECEIVED, which are cut up in place. False: it is none. */
void fix_options_ids(fix_options *o, char *text);
bool fix_options_message(fix_options *o, char *text);
void fix_options_free(fix_options *o);

typedef struct fix_clocks fix_clocks;

/* Reads all logs, and tells on standard error what is wrong with their clocks. Settles the format of the output. */
fix_clocks *fix_clocks_read(const fix_options *options, input_settings *settings, char **files, size_t count,
                            const char *directory);

/* The next record, corrected, valid until the next call; NULL at the end. */
const nl_record *fix_clocks_next(fix_clocks *f);

/* NULL is allowed. */
void fix_clocks_free(fix_clocks *f);

#endif
