/*
 * Compares two groups of logs, before and after a change. Finds the places that have changed: in time per request, in
 * visits, and in time per visit. 99 % intervals come from a bootstrap of blocks of consecutive requests (Kuensch,
 * 1989), because requests at about the same time resemble each other.
 */
#ifndef NLDIAG_COMPARE_H
#define NLDIAG_COMPARE_H

#include "diag/findings.h"

typedef enum compare_result { COMPARE_EQUAL, COMPARE_SLOWER, COMPARE_FASTER, COMPARE_CANNOT_TELL } compare_result;

/* Prints the comparison as JSON or as text. */
compare_result compare_print(const visits *before, const visits *after, bool json);

#endif
