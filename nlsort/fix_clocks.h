/*
 * Implements nlsort --fix-clocks. A first pass estimates the clocks and stores the records in an unnamed file. A second
 * pass returns the records with corrected times.
 */
#ifndef NLSORT_FIX_CLOCKS_H
#define NLSORT_FIX_CLOCKS_H

#include "input.h"

#include "clocks/correction.h"

/* The settings from fix_clocks_options. Initially all zero. Free with fix_options_free. */
typedef struct fix_options {
    bool asked; /* --fix-clocks was given */
    correction_options what;
    const char **ids;
    correction_message *messages;
} fix_options;

/* --fix-clocks, --reference, --id and --message. The setters modify the text of the values. */
extern const nl_option fix_clocks_options[];

void fix_options_free(fix_options *o);

typedef struct fix_clocks fix_clocks;

/*
 * Reads all logs, reports the offsets of their clocks, and sets the format of the output. The temporary file is in
 * `directory`. Ends the program if it cannot write this file. Records in `settings` which logs cannot be read. Free the
 * result with fix_clocks_free.
 */
fix_clocks *fix_clocks_read(const fix_options *options, input_settings *settings, char **files, size_t count,
                            const char *directory);

/* Returns the next corrected record, which is valid until the next call, or NULL at the end. */
const nl_record *fix_clocks_next(fix_clocks *f);

/* `f` may be NULL. */
void fix_clocks_free(fix_clocks *f);

#endif
