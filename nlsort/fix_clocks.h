/*
 * nlsort --fix-clocks: what comes is read once, learnt from, and kept in a file without a name; then, the clocks being
 * known, read again from there with its times corrected.
 */
#ifndef NLSORT_FIX_CLOCKS_H
#define NLSORT_FIX_CLOCKS_H

#include "input.h"

#include "clocks/correction.h"

/* What --fix-clocks and its like say. Zeros at first; fix_options_free frees what it holds. */
typedef struct fix_options {
    bool asked;              /* to fix clocks */
    correction_options what; /* whose lists are these: */
    const char **ids;
    correction_message *messages;
} fix_options;

/* --fix-clocks, --reference, --id and --message, about a fix_options; the text of values is cut up in place. */
extern const nl_option fix_clocks_options[];

void fix_options_free(fix_options *o);

typedef struct fix_clocks fix_clocks;

/*
 * Reads all logs, and tells on standard error what is wrong with their clocks. Settles the format of the output. What
 * comes is kept in directory, whose name is to last; that it can't be ends the program, what can't be read is noted in
 * settings. The caller's, for fix_clocks_free.
 */
fix_clocks *fix_clocks_read(const fix_options *options, input_settings *settings, char **files, size_t count,
                            const char *directory);

/* The next record, corrected, valid until the next call; NULL at the end. */
const nl_record *fix_clocks_next(fix_clocks *f);

/* NULL is allowed. */
void fix_clocks_free(fix_clocks *f);

#endif
