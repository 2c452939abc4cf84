/* The subcommands, each in a separate file. They return an exit status. Messages begin with argv[0]. Not
 * thread-safe. */
#ifndef NLKERNEL_COMMAND_H
#define NLKERNEL_COMMAND_H

int command_list(int argc, char **argv);
int command_record(int argc, char **argv);
int command_live(int argc, char **argv);
int command_control(int argc, char **argv);
int command_report(int argc, char **argv);
int command_rules(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_calls(int argc, char **argv);
int command_graph(int argc, char **argv);
int command_symbols(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_join(int argc, char **argv);

/* Internal command: runs a measurement for a rules file or for nlkernel bench (workload.c). */
int command_workload(int argc, char **argv);

#endif
