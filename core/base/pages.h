/* Zeroed memory that is not on the heap, for signal handlers, which may have interrupted malloc. */
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

/* Returns `size` zeroed bytes, which nl_pages_free frees; NULL if memory runs out. Safe in signal handlers. */
static inline void *nl_pages_new(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
#ifdef NL_PAGES_ARE_ROOTS
    __lsan_register_root_region(pages, size); /* the pages may contain the only pointers to heap memory */
#endif
    return pages;
}

/* Frees memory that nl_pages_new returned for the same size. Safe in signal handlers. */
static inline void nl_pages_free(void *pages, size_t size)
{
#ifdef NL_PAGES_ARE_ROOTS
    __lsan_unregister_root_region(pages, size);
#endif
    munmap(pages, size);
}

#endif
