/* The names of this machine's system calls by their numbers; some numbers have none. Made by make. */
#ifndef NETLOGGER_SYNTHESIS_SYSCALLS_H
#define NETLOGGER_SYNTHESIS_SYSCALLS_H

extern const char *const nl_syscall_names[];
extern const unsigned nl_syscall_count;

#endif
