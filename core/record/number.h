/*
 * Numbers in text, the same in every locale: a program with a window runs in its user's, where "1.5" may be "1,5".
 */
#ifndef NETLOGGER_FORMAT_NUMBER_H
#define NETLOGGER_FORMAT_NUMBER_H

#include <netlogger.h>

/* Reads a decimal integer from first byte to last. False when text is none or it does not fit. */
bool nl_number_parse_int(nl_string text, int64_t *value);

/* Reads a decimal number with optional fraction and exponent, or inf, infinity, nan; false when text is none. */
bool nl_number_parse_double(nl_string text, double *value);

/*
 * Write into out (NL_FIELD_TEXT_SIZE bytes are enough), NUL-terminated, and return the length. A double takes as few
 * digits as give the same double again.
 */
size_t nl_number_format_int(int64_t value, char *out);
size_t nl_number_format_uint(uint64_t value, char *out);
size_t nl_number_format_double(double value, char *out);

#endif
