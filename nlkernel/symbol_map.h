/*
 * Which source file each function of the kernel is in: as "nlkernel symbols" writes it, FUNCTION, a tab, FILE:LINE, a
 * line each, or as DWARF says it. A name may be in several files. One thread.
 */
#ifndef NLKERNEL_SYMBOL_MAP_H
#define NLKERNEL_SYMBOL_MAP_H

#include <netlogger.h>

typedef struct symbol_place {
    char *function, *file; /* the file below the source's root: net/ipv4/tcp.c */
    unsigned line;         /* 0: not known */
} symbol_place;

typedef struct symbol_map {
    symbol_place *places; /* by function, then file */
    size_t count, capacity;
} symbol_map;

/*
 * Adds what a file says: an ELF file with DWARF (vmlinux, a module, what .debug packages have), or such lines. root:
 * what paths in DWARF begin with and is left out; NULL: found out. False with the reason in nl_error_message().
 */
bool symbol_map_read(symbol_map *m, const char *path, const char *root);

/* Adds one; symbol_map_sort once all are there. */
void symbol_map_add(symbol_map *m, const char *function, const char *file, unsigned line);
void symbol_map_sort(symbol_map *m);

/* Where a function is, *count places; what the compiler put behind its name (.isra.0) does not count. NULL: unknown. */
const symbol_place *symbol_map_find(const symbol_map *m, const char *function, size_t *count);

void symbol_map_free(symbol_map *m);

/* The part of symbol_map_read for ELF files, in dwarf.c. */
bool symbol_map_read_dwarf(symbol_map *m, const char *path, const char *root);

#endif
