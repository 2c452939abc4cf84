#include "config.h"

#include "big.h"

#include "program/program.h"

#include <sys/mman.h>

enum { LARGE = 1 << 20 };

static void *checked(void *data, size_t size)
{
    if (data == MAP_FAILED)
        program_fail(PROGRAM_PROBLEM, "out of memory; use a smaller --buffer-size");
    if (size >= LARGE)
        madvise(data, size, MADV_HUGEPAGE);
    return data;
}

void *big_new(size_t size)
{
    return checked(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), size);
}

void *big_resize(void *data, size_t was, size_t size)
{
    return was == 0 ? big_new(size) : checked(mremap(data, was, size, MREMAP_MAYMOVE), size);
}

void big_free(void *data, size_t size)
{
    if (size > 0)
        munmap(data, size);
}
