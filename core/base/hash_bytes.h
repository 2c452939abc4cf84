/*
 * A 64-bit hash that multiplies and folds its input, as in Wang Yi's wyhash. A secret seed prevents deliberate
 * collisions.
 */
#ifndef NETLOGGER_BASE_HASH_BYTES_H
#define NETLOGGER_BASE_HASH_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* Returns the exclusive or of the two halves of the 128-bit product of a and b. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else /* 32-bit processors */
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), high = (a >> 32) * (b >> 32);
    uint64_t left = (a >> 32) * (b & UINT32_MAX) + (low >> 32),
             right = (a & UINT32_MAX) * (b >> 32) + (left & UINT32_MAX);
    return (a * b) ^ (high + (left >> 32) + (right >> 32));
#endif
}

/* Returns a secret seed. Uses the address of a variable if the kernel has no random bytes yet. */
static inline uint64_t hash_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed;
    return seed; /* NOLINT(clang-analyzer-core.StackAddressEscape): an address as a number */
}

/* Returns the hash of `size` bytes. The hash depends on the byte order of the host. */
static inline uint64_t hash_bytes(uint64_t seed, const char *data, size_t size)
{
    uint64_t hash = seed ^ size, word;
    for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = hash_mix(hash ^ word, UINT64_C(0x9e3779b97f4a7c15));
    }
    word = 0;
    if (size > 0)
        memcpy(&word, data, size);
    return hash_mix(hash ^ word, UINT64_C(0xd6e8feb86659fd93));
}

#endif
