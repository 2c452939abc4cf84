/*
 * The subcommands: one file each. argv[0] is what messages about options begin with; each returns an exit status.
 */
#ifndef NLKERNEL_COMMAND_H
#define NLKERNEL_COMMAND_H

#include <stdbool.h>

int command_list(int argc, char **argv);
int command_record(int argc, char **argv);
int command_live(int argc, char **argv);
int command_report(int argc, char **argv);
int command_rules(int argc, char **argv);
int command_bench(int argc, char **argv);

/* What rules have done while it records; for nlkernel itself. */
int command_workload(int argc, char **argv);
int command_control(int argc, char **argv);
int command_graph(int argc, char **argv);
int command_symbols(int argc, char **argv);

/* The one report that is made of calls: when --functions is among the words. */
bool report_is_of_functions(int argc, char **argv);
int report_functions(int argc, char **argv);

#endif
