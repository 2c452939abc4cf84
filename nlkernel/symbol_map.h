/*
 * The source files of the kernel's functions, from the output of nlkernel symbols (lines of FUNCTION, a tab, FILE:LINE)
 * or from DWARF. Several files may have a function with the same name. One thread.
 */
#ifndef NLKERNEL_SYMBOL_MAP_H
#define NLKERNEL_SYMBOL_MAP_H

#include <netlogger.h>

typedef struct symbol_place {
    char *function, *file; /* file: relative to the root of the source, such as net/ipv4/tcp.c */
    unsigned line;         /* 0: unknown */
} symbol_place;

/* Starts as zeros. */
typedef struct symbol_map {
    symbol_place *places; /* by function, then file */
    size_t count, capacity;
} symbol_map;

/*
 * Adds the functions of an ELF file with DWARF (vmlinux, a module, a file of a debug package), or of lines of that
 * form. Returns false and sets the error on failure.
 */
bool symbol_map_read(symbol_map *m, const char *path);

/* Returns the places of a function, *count of them, or NULL. A suffix of the compiler, such as .isra.0, is ignored. */
const symbol_place *symbol_map_find(const symbol_map *m, const char *function, size_t *count);

void symbol_map_free(symbol_map *m);

#endif
