/*
 * Places that only some of the requests visit: those with one value of a field, such as a slow statement of one page.
 * Callers: findings.c and report.c. No state.
 */
#ifndef NLDIAG_VISITORS_H
#define NLDIAG_VISITORS_H

#include "diag/findings.h"

/*
 * Finds the value of a text field by which the requests that visit a place differ from the others. Returns false if
 * there is no such value, or if the place takes little time or is visited by most requests.
 */
bool place_find_visitors(const visits *v, uint32_t place, const column **field, float *value);

/* Adds an ordinary finding for each such place whose time no finding explains: the requests with the value cause this
 * time. */
void find_visitors(findings *f);

#endif
