/*
 * Memory in pages of its own, for what is made where the heap may not be used: in a signal handler, which may have come
 * in the middle of malloc. Zeroed.
 */
#ifndef NETLOGGER_BASE_PAGES_H
#define NETLOGGER_BASE_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define NL_PAGES_ARE_ROOTS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NL_PAGES_ARE_ROOTS 1
#endif
#endif
#ifdef NL_PAGES_ARE_ROOTS
#include <sanitizer/lsan_interface.h>
#endif

/* size bytes, to be freed with nl_pages_free of the same size; NULL when there are none. Safe in signal handlers. */
static inline void *nl_pages_new(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
#ifdef NL_PAGES_ARE_ROOTS
    __lsan_register_root_region(pages, size); /* what only they point to is not lost */
#endif
    return pages;
}

static inline void nl_pages_free(void *pages, size_t size)
{
#ifdef NL_PAGES_ARE_ROOTS
    __lsan_unregister_root_region(pages, size);
#endif
    munmap(pages, size);
}

#endif
