/*
 * Joins the places of programs that are processes of one program, such as wk1-0 and wk1-1.
 *
 * Many systems give each process a different name, with a number (worker-12), a process ID (gunicorn.1234) or the name
 * of a Kubernetes pod. With such names, each place has only the visits of one process, which may be too few to show a
 * cause, and peers cannot be compared. The names of these processes have the same pattern, in which "*" stands for the
 * numbers. Equal patterns are not sufficient evidence, because stage1 and stage2 can be steps of a pipeline. Two
 * programs are processes of one program only if their spans and events have the same names. In addition, requests must
 * not visit the programs one after another, or one inside the other, in a fixed order.
 */
#ifndef NLDIAG_PROCESSES_H
#define NLDIAG_PROCESSES_H

#include "diag/visits.h"

/* Replaces the names of processes in all places with their pattern, joins places that have become equal, and numbers
 * the instances of the sites. Call the function once, before the places are indexed. */
void visits_join_processes(visits *v);

/* Returns whether a place has several processes on the same host. */
bool place_has_processes(const visits *v, const place *p);

#endif
