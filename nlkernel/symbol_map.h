/*
 * Maps the kernel's functions to their source files, from DWARF or from the output of nlkernel symbols (lines that
 * consist of FUNCTION, a tab and FILE:LINE). Several files may contain functions with the same name. Not thread-safe.
 */
#ifndef NLKERNEL_SYMBOL_MAP_H
#define NLKERNEL_SYMBOL_MAP_H

#include <netlogger.h>

typedef struct symbol_place {
    char *function, *file; /* file is relative to the root of the source: net/ipv4/tcp.c */
    unsigned line;         /* 0: unknown */
} symbol_place;

/* Initially all zero. */
typedef struct symbol_map {
    symbol_place *places; /* sorted by function, then by file */
    size_t count, capacity;
} symbol_map;

/* Adds the functions of an ELF file with DWARF (a vmlinux, a module, or a file from a debug package), or of an output
 * of nlkernel symbols. Returns false and sets the error on failure. */
bool symbol_map_read(symbol_map *m, const char *path);

/* Returns the places of a function and sets *count to their number. If the map does not contain the function, removes a
 * suffix that the compiler has added, such as .isra.0, and searches again. Returns NULL if both searches fail. */
const symbol_place *symbol_map_find(const symbol_map *m, const char *function, size_t *count);

void symbol_map_free(symbol_map *m);

#endif
