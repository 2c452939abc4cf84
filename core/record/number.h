/*
 * Numbers as text, independent of the locale. A program with a GUI uses its user's locale, in which "1.5" may be
 * written "1,5".
 */
#ifndef NETLOGGER_RECORD_NUMBER_H
#define NETLOGGER_RECORD_NUMBER_H

#include <netlogger.h>

/* Parses a decimal integer. Returns false if text is not an integer or is out of range. */
bool nl_number_parse_int(nl_string text, int64_t *value);

/*
 * Parses a decimal number with optional fraction and exponent, or inf, infinity or nan. Returns false if text has
 * another form or memory runs out.
 */
bool nl_number_parse_double(nl_string text, double *value);

/*
 * Format a number into out (NL_FIELD_TEXT_SIZE bytes suffice), NUL-terminated, and return the length. A double is
 * written with the fewest digits that parse to the same double.
 */
size_t nl_number_format_int(int64_t value, char *out);
size_t nl_number_format_uint(uint64_t value, char *out);
size_t nl_number_format_double(double value, char *out);

#endif
