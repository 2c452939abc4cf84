/*
 * The subcommands: one file each. argv[0] is what messages about options begin with; each returns an exit status.
 */
#ifndef NLKERNEL_COMMAND_H
#define NLKERNEL_COMMAND_H

int command_list(int argc, char **argv);
int command_record(int argc, char **argv);
int command_live(int argc, char **argv);
int command_report(int argc, char **argv);
int command_schema(int argc, char **argv);

/* What a schema has done while it records; for nlkernel itself. */
int command_workload(int argc, char **argv);

#endif
