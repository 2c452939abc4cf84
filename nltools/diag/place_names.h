/*
 * Names of places that several logs have in common.
 *
 * A process often has another name in the next log: its process ID, or the random part of a pod's name, has changed.
 * The logs of a comparison, or the panes of a watch, must nevertheless share the process's places. A shared place's
 * name contains the pattern of the program's name, in which "*" stands for the numbers. If two places of a log would
 * get the same name, they stay separate, because processes.h has found that their programs are separate steps.
 *
 * Memory is bounded by PLACE_NAMES_MAX. Not thread-safe.
 */
#ifndef NLDIAG_PLACE_NAMES_H
#define NLDIAG_PLACE_NAMES_H

#include "diag/visits.h"

enum { PLACE_NAMES_MAX = 4096, PLACE_NAME_NONE = UINT32_MAX };

typedef struct place_names place_names;

place_names *place_names_new(void);
void place_names_free(place_names *n);

/*
 * Returns the number of each place's name, indexed by the place, or PLACE_NAME_NONE if PLACE_NAMES_MAX names are
 * already known. Two places of a log have different numbers. The caller frees the numbers with g_free.
 */
uint32_t *place_names_add(place_names *n, const visits *v);

/* Like text_place (findings.h), with the patterns of the programs' names (processes.h). The caller frees the text with
 * g_free. */
char *text_pattern_of_place(const visits *v, uint32_t number, const char *host);

/* Returns a name. The name contains a pattern if several programs have had this name. The text is valid until the next
 * call of place_names_add. */
const char *place_names_text(const place_names *n, uint32_t number);

#endif
