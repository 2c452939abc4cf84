/*
 * Manages the tables of visits: their memory, the removal of every second request, and the index by place. Only
 * visits.c and repeats.c use these functions.
 */
#ifndef NLDIAG_VISIT_TABLES_H
#define NLDIAG_VISIT_TABLES_H

#include "diag/visits.h"

/* Returns the number of bytes that the tables use. */
size_t visits_memory(const visits *v);

/* Drops every second request. */
void visits_halve(visits *v);

/* Sorts the visits by place and then by time, and adds up the times of sites and places. Call the function again after
 * visits have changed. */
void visits_index_places(visits *v);

/*
 * Sorts the visits by place, adds up the times of places, and adds a column of hosts for each program on several hosts.
 */
void visits_index(visits *v);

#endif
