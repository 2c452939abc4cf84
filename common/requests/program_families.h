/*
 * Finds the programs that are processes of one program.
 *
 * The programs of a family have names with the same pattern (program_names.h), such as worker-1 and worker-2. They are
 * processes of one program if a process handles a request alone. The programs stage-1 and stage-2, which a request
 * visits together, are different programs. A program that shares many of its requests with other programs of its
 * family is therefore separate. In the pattern of a family, "*" replaces all numbers of the name or, if the program is
 * separate in this family, only the last number. For example, the family stage*-* has the separate programs stage1-1
 * and stage2-1, and the family stage1-* has processes of one program.
 *
 * The module is a part of precedence.h. It owns counts for each program. Only one thread at a time may use a
 * program_families.
 */
#ifndef NETLOGGER_REQUESTS_PROGRAM_FAMILIES_H
#define NETLOGGER_REQUESTS_PROGRAM_FAMILIES_H

#include "requests/request_graph.h"

typedef struct program_families program_families;

program_families *program_families_new(void);
void program_families_free(program_families *f); /* NULL is allowed */

/* Learns from the events of one request. Ignores requests that visit very many programs. */
void program_families_learn(program_families *f, const request_event *events, size_t count);

/*
 * Returns the event's kind: a number that is equal for events with the same name and program. Before
 * program_families_learn, each program is separate.
 */
uint64_t program_families_kind(const program_families *f, const request_event *e);

#endif
