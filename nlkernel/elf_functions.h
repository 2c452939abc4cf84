/*
 * Finds the functions of shared libraries, for probes. nlkernel runs as root, but the libraries may be files of any
 * user. Therefore, this module has no state and allocates no memory, reads only the tables that it needs, and checks
 * each value that it reads. The format: elf(5).
 */
#ifndef NLKERNEL_ELF_FUNCTIONS_H
#define NLKERNEL_ELF_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Searches the dynamic symbols of an ELF file of this computer's kind for functions. Sets offsets[i] to the offset in
 * the file of the function names[i], or to 0 if the file lacks this function. Returns false if the file is invalid or
 * unreadable.
 */
bool elf_find_functions(int fd, const char *const names[], size_t count, uint64_t offsets[]);

#endif
