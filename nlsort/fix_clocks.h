/*
 * Implements nlsort --fix-clocks. The first pass reads the logs, estimates the errors of the clocks, and stores the
 * records in an unnamed file. The second pass returns the records with corrected times. Only one thread at a time may
 * use these functions.
 */
#ifndef NLSORT_FIX_CLOCKS_H
#define NLSORT_FIX_CLOCKS_H

#include "input.h"

#include "clocks/correction.h"

/* The settings from fix_clocks_options. Initialize the structure with zeros; fix_options_free frees its memory. */
typedef struct fix_options {
    bool asked; /* --fix-clocks was given */
    correction_options what;
    const char **ids;
    correction_message *messages;
} fix_options;

/* The options --fix-clocks, --reference, --id and --message. Their setters modify the text of the values. */
extern const nl_option fix_clocks_options[];

void fix_options_free(fix_options *o);

typedef struct fix_clocks fix_clocks;

/*
 * Reads all logs, prints the offsets of their clocks, and sets the format of the output. The temporary file is in
 * `directory`; the function ends the program if it cannot write this file. settings->reading counts the logs that
 * cannot be read. Free the result with fix_clocks_free.
 */
fix_clocks *fix_clocks_read(const fix_options *options, input_settings *settings, char **files, size_t count,
                            const char *directory);

/* Returns the next corrected record, which is valid until the next call, or NULL at the end. */
const nl_record *fix_clocks_next(fix_clocks *f);

void fix_clocks_free(fix_clocks *f);

#endif
