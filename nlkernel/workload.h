/*
 * What rules may want done while it records, or just before: loops that measure the machine, in a process of their
 * own, which writes what it measured as records of its own. One thread.
 */
#ifndef NLKERNEL_WORKLOAD_H
#define NLKERNEL_WORKLOAD_H

/* Runs one, whose records go into a file: argv is NAME FILE [ARGUMENT...]. Returns an exit status. */
int workload_main(int argc, char **argv);

#endif
