#include "config.h"

#include "record/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#ifdef __x86_64__
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* tables[k][b] is the effect of byte b on the checksum k bytes later. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (unsigned b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (unsigned b = 0; b < 256; b++)
            tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 255];
}

uint32_t nl_crc32c_by_table(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&tables_once, make_tables);
    const unsigned char *at = data;
    crc = ~crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word = le64toh(word) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= tables[7 - i][word >> (8 * i) & 255];
    }
    for (; size > 0; at++, size--)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 255];
    return ~crc;
}

#ifdef __x86_64__
static inline uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Returns the checksum register after the bytes. Does not invert the register at the start and at the end. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; at += 8, size -= 8)
        wide = _mm_crc32_u64(wide, word_at(at));
    crc = (uint32_t)wide;
    for (; size > 0; at++, size--)
        crc = _mm_crc32_u8(crc, *at);
    return crc;
}

/*
 * The processor needs three cycles for a CRC instruction, but can start one in each cycle, so the checksums of three
 * adjacent lanes are computed at once. A multiplication moves a lane's register over the bytes that follow (V. Gopal et
 * al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011).
 */
enum { LANE = 1024 };
static uint32_t over_lane, over_two_lanes;
static pthread_once_t lanes_once = PTHREAD_ONCE_INIT;

/* Returns x to the power of n modulo the polynomial, reflected. */
static uint32_t power_of_x(unsigned n)
{
    uint32_t power = 0x80000000;
    for (; n > 0; n--)
        power = power >> 1 ^ (power & 1 ? POLYNOMIAL : 0);
    return power;
}

/*
 * Each exponent is the number of bits minus 33. The product of two reflected numbers has an additional factor x, which
 * is 1 bit, and the CRC instruction adds 32 bits.
 */
static void make_lanes(void)
{
    over_lane = power_of_x(8 * LANE - 33);
    over_two_lanes = power_of_x(2 * 8 * LANE - 33);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t move_over(uint32_t crc, uint32_t bytes)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)bytes), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t by_lanes(uint32_t crc, const unsigned char *at, size_t size)
{
    pthread_once(&lanes_once, make_lanes);
    for (; size >= 3 * LANE; at += 3 * LANE, size -= 3 * LANE) {
        uint64_t first = crc, second = 0, third = 0;
        for (const unsigned char *word = at; word < at + LANE; word += 8) {
            first = _mm_crc32_u64(first, word_at(word));
            second = _mm_crc32_u64(second, word_at(word + LANE));
            third = _mm_crc32_u64(third, word_at(word + 2 * LANE));
        }
        crc = move_over((uint32_t)first, over_two_lanes) ^ move_over((uint32_t)second, over_lane) ^ (uint32_t)third;
    }
    return by_instruction(crc, at, size);
}
#endif

uint32_t nl_crc32c(uint32_t crc, const void *data, size_t size)
{
#ifdef __x86_64__
    if (size >= 3 * LANE && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return ~by_lanes(~crc, data, size);
    if (__builtin_cpu_supports("sse4.2"))
        return ~by_instruction(~crc, data, size);
#endif
    return nl_crc32c_by_table(crc, data, size);
}
