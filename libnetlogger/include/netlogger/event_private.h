/*
 * The implementation of NL_EVENT, which is compiled into programs. Programs must not use these names; they may change
 * with the library's major version.
 *
 * An event in a ring consists of a header and the values of its fields. The values are unaligned and in the machine's
 * byte order. A number is stored unchanged, and a string as its size (uint32_t) and its bytes. The constant parts of
 * the event (its name and level, and the names and types of its fields) are in its site, a numbered static variable at
 * the place of the NL_EVENT.
 */
#ifndef NETLOGGER_EVENT_PRIVATE_H
#define NETLOGGER_EVENT_PRIVATE_H

#ifdef __cplusplus
#include <type_traits>
#endif

NL_BEGIN_DECLS

/* The encoding of a value in the ring. */
enum {
    NL_RAW_NONE = 0,
    NL_RAW_STRING,
    NL_RAW_INT8,
    NL_RAW_INT16,
    NL_RAW_INT32,
    NL_RAW_INT64,
    NL_RAW_UINT8,
    NL_RAW_UINT16,
    NL_RAW_UINT32,
    NL_RAW_UINT64,
    NL_RAW_FLOAT,
    NL_RAW_DOUBLE,
    NL_RAW_BOOL,
    NL_RAW_TRACE_ID, /* 16 bytes, printed as hexadecimal digits */
    NL_RAW_SPAN_ID,  /* 8 bytes, printed as hexadecimal digits */
};

/* A place in the program with an NL_EVENT. */
typedef struct nl_event_site {
    const char *event;
    const char *const *names;   /* an array of field_count names */
    const unsigned char *types; /* an array of field_count types (NL_RAW_INT32 and so on) */
    unsigned short field_count;
    unsigned char level;
    unsigned char off;          /* nonzero: switched off by name */
    unsigned id;                /* number of the site; 0 until the program reaches the site */
    struct nl_event_site *next; /* next in the list of registered sites */
} nl_event_site;

/* The part of a log that NL_EVENT reads. */
typedef struct nl_log_gate {
    int threshold; /* events with a greater level are off */
    unsigned slot; /* index of the log's ring in nl_private_rings, if less than NL_PRIVATE_SLOTS */
} nl_log_gate;

/*
 * The part of a ring that the producer uses. The ring's memory is mapped twice in succession, so that no event wraps.
 * Positions count all bytes ever written and are masked when they are used.
 */
typedef struct nl_ring_producer {
    char *data;
    uint64_t mask;       /* size of the ring in bytes, a power of two, minus 1 */
    uint64_t head;       /* position of the next event */
    uint64_t limit;      /* maximum end of an event on the fast path; the slow path checks the reader's position */
    uint64_t *published; /* end of the readable events; in shared memory */
    unsigned busy;       /* 1: this thread is writing an event; 2: it is making space for an event */
    unsigned slow_clock; /* nonzero: there is no usable time-stamp counter, and ticks are from nl_private_slow_ticks */
    uint64_t called;     /* set by nl_private_prepare: the ticks at its call, which become the time of the event */
} nl_ring_producer;

#define NL_PRIVATE_SLOTS 16
#define NL_PRIVATE_AHEAD 256 /* distance of the prefetch in bytes; less than the size of the smallest ring */
extern NL_API __thread nl_ring_producer *nl_private_rings[NL_PRIVATE_SLOTS] __attribute__((tls_model("initial-exec")));

/* The 16 bytes at the beginning of every event in the ring. */
typedef struct nl_event_header {
    uint32_t size;  /* bytes, including this header */
    uint32_t site;  /* number of the site */
    uint64_t ticks; /* time of the event, as nl_private_ticks returns it */
} nl_event_header;

/*
 * Takes the slow path for a first event, a full ring, an event in a span, or an event in a signal handler. size is the
 * size of the event in bytes, including the header. Returns the ring, marked as busy, or NULL if the event is lost or
 * switched off.
 */
NL_API nl_ring_producer *nl_private_prepare(nl_log_gate *log, nl_event_site *site, size_t size);

/*
 * Removes the sites of the program or shared library that contains the address `inside`. The program or library calls
 * this function when it is unloaded. The function is weak, so that a file that includes this header and logs no events
 * does not need the library.
 */
NL_API void nl_private_sites_leave(const void *inside) __attribute__((weak));

__attribute__((destructor)) static void nl_private_sites_end(void)
{
    static const char inside = 0;
    if (nl_private_sites_leave != 0)
        nl_private_sites_leave(&inside);
}

/* Returns the time of the monotonic clock in nanoseconds. Safe in signal handlers. */
NL_API uint64_t nl_private_slow_ticks(void);

/*
 * Returns the time in ticks, from the time-stamp counter if it is usable. Uses the compiler's builtin, because
 * <x86intrin.h> has 45,000 lines, and compiling them takes seven times as long as compiling the rest of a small
 * program.
 */
static inline uint64_t nl_private_ticks(const nl_ring_producer *ring)
{
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_expect(!ring->slow_clock, 1))
        return __builtin_ia32_rdtsc();
#endif
    (void)ring;
    return nl_private_slow_ticks();
}

/*
 * The writer thread may set the limit to 0 at any time. A plain load after the signal fence reads the new limit as
 * reliably as an atomic load. A relaxed atomic load would make nl_private_begin one instruction longer, too long for
 * compilers to inline, and an event would then need 50 % more instructions.
 */
#if defined(__SANITIZE_THREAD__)
#define NL_PRIVATE_LIMIT(ring) __atomic_load_n(&(ring)->limit, __ATOMIC_RELAXED)
#else
#define NL_PRIVATE_LIMIT(ring) ((ring)->limit)
#endif

static inline char *nl_private_begin(nl_log_gate *log, nl_event_site *site, size_t size, nl_ring_producer **out)
{
    nl_ring_producer *ring = log->slot < NL_PRIVATE_SLOTS ? nl_private_rings[log->slot] : NULL;
    unsigned id = __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);
    int ready = ring != NULL && id != 0 && !ring->busy;
    uint64_t ticks;
    if (__builtin_expect(ready, 1)) {
        /*
         * Mark the ring as busy before the check for space. Otherwise, an event of a signal handler could take the
         * space after the check.
         */
        __atomic_store_n(&ring->busy, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        ready = ring->head + size <= NL_PRIVATE_LIMIT(ring);
        if (__builtin_expect(!ready, 0))
            __atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
    }
    if (__builtin_expect(!ready, 0)) {
        ring = nl_private_prepare(log, site, size);
        if (ring == NULL)
            return NULL;
        id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
        __atomic_store_n(&ring->busy, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        ticks = ring->called;
    } else {
        ticks = nl_private_ticks(ring);
    }
    *out = ring;
    char *at = ring->data + (ring->head & ring->mask);
    /*
     * Prefetches memory for later events. The hardware prefetcher stops at each page boundary, which would delay one
     * event in 90.
     */
    __builtin_prefetch(at + NL_PRIVATE_AHEAD, 1);
    nl_event_header header = {NL_PRIVATE_CAST(uint32_t, size), id, ticks};
    memcpy(at, &header, sizeof header);
    return at + sizeof header;
}

static inline void nl_private_commit(nl_ring_producer *ring, size_t size)
{
    ring->head += size;
    __atomic_store_n(ring->published, ring->head, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
}

/* Copies short strings without a function call. Most strings in events are short. */
static inline void nl_private_copy(char *to, const char *from, size_t size)
{
    if (size > 32) {
        memcpy(to, from, size);
    } else if (size >= 16) {
        char first[16], last[16];
        memcpy(first, from, 16);
        memcpy(last, from + size - 16, 16);
        memcpy(to, first, 16);
        memcpy(to + size - 16, last, 16);
    } else if (size >= 8) {
        uint64_t first, last;
        memcpy(&first, from, 8);
        memcpy(&last, from + size - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + size - 8, &last, 8);
    } else if (size >= 4) {
        uint32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + size - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + size - 4, &last, 4);
    } else {
        for (size_t i = 0; i < size; i++)
            to[i] = from[i];
    }
}

static inline char *nl_private_put_scalar(char *at, const void *value, size_t size)
{
    memcpy(at, value, size);
    return at + size;
}

static inline char *nl_private_put_string(char *at, const void *value, size_t value_size)
{
    (void)value_size;
    const nl_string *string = NL_PRIVATE_CAST(const nl_string *, value);
    uint32_t size = NL_PRIVATE_CAST(uint32_t, string->size);
    memcpy(at, &size, sizeof size);
    nl_private_copy(at + sizeof size, string->data, size);
    return at + sizeof size + size;
}

static inline size_t nl_private_scalar_size(const void *value, size_t size)
{
    (void)value;
    return size;
}

static inline size_t nl_private_string_size(const void *value, size_t size)
{
    (void)size;
    return sizeof(uint32_t) + NL_PRIVATE_CAST(const nl_string *, value)->size;
}

static inline nl_string nl_private_cut(nl_string string)
{
    string.size = string.data == NULL ? 0 : string.size < NL_VALUE_SIZE_MAX ? string.size : NL_VALUE_SIZE_MAX;
    return string;
}

static inline nl_string nl_private_text(const char *text)
{
    if (text == NULL)
        text = "(null)";
    return nl_private_cut(nl_bytes(text, strlen(text)));
}

NL_END_DECLS

/* The encodings of char and long depend on the machine. */
enum {
    NL_RAW_CHAR = NL_PRIVATE_CAST(char, -1) < 0 ? NL_RAW_INT8 : NL_RAW_UINT8,
    NL_RAW_LONG = sizeof(long) == 8 ? NL_RAW_INT64 : NL_RAW_INT32,
    NL_RAW_ULONG = sizeof(long) == 8 ? NL_RAW_UINT64 : NL_RAW_UINT32,
};

/* The type of a value that cannot be logged. With this type, the compiler reports only one error. */
typedef struct nl_private_refused {
    char nothing;
} nl_private_refused;

/* All scalar types: X(name, type, encoding in the ring). */
#define NL_PRIVATE_SCALARS(X)                                                                                          \
    X(bool, bool, NL_RAW_BOOL)                                                                                         \
    X(char, char, NL_RAW_CHAR)                                                                                         \
    X(schar, signed char, NL_RAW_INT8)                                                                                 \
    X(uchar, unsigned char, NL_RAW_UINT8)                                                                              \
    X(short, short, NL_RAW_INT16)                                                                                      \
    X(ushort, unsigned short, NL_RAW_UINT16)                                                                           \
    X(int, int, NL_RAW_INT32)                                                                                          \
    X(uint, unsigned, NL_RAW_UINT32)                                                                                   \
    X(long, long, NL_RAW_LONG)                                                                                         \
    X(ulong, unsigned long, NL_RAW_ULONG)                                                                              \
    X(llong, long long, NL_RAW_INT64)                                                                                  \
    X(ullong, unsigned long long, NL_RAW_UINT64)                                                                       \
    X(float, float, NL_RAW_FLOAT)                                                                                      \
    X(double, double, NL_RAW_DOUBLE)

#ifdef __cplusplus
#define NL_PRIVATE_STATIC_ASSERT static_assert
#define NL_PRIVATE_AUTO auto

template <typename T> struct nl_private_type; /* the type that nl_private_capture returns */
#define NL_PRIVATE_OVERLOAD(word, type, raw)                                                                           \
    static inline type nl_private_capture(type value)                                                                  \
    {                                                                                                                  \
        return value;                                                                                                  \
    }                                                                                                                  \
    template <> struct nl_private_type<type> {                                                                         \
        static constexpr unsigned char raw_type = raw;                                                                 \
    };
NL_PRIVATE_SCALARS(NL_PRIVATE_OVERLOAD)
static inline double nl_private_capture(long double value)
{
    return NL_PRIVATE_CAST(double, value);
}
static inline nl_string nl_private_capture(const char *text)
{
    return nl_private_text(text);
}
static inline nl_string nl_private_capture(char *text)
{
    return nl_private_text(text);
}
static inline nl_string nl_private_capture(nl_string string)
{
    return nl_private_cut(string);
}
template <> struct nl_private_type<nl_string> {
    static constexpr unsigned char raw_type = NL_RAW_STRING;
};

/* Logs an unscoped enumeration as the number to which it is promoted. Rejects scoped enumerations and other types,
 * without converting them. */
template <typename T> struct nl_private_is_number {
    static constexpr bool value = std::is_enum<T>::value && std::is_convertible<T, long long>::value;
};
template <typename T>
static inline auto nl_private_capture(T value) ->
    typename std::enable_if<nl_private_is_number<T>::value, decltype(+value)>::type
{
    return +value;
}
template <typename T>
static inline typename std::enable_if<!nl_private_is_number<T>::value, nl_private_refused>::type
nl_private_capture(const T &)
{
    return nl_private_refused();
}
template <> struct nl_private_type<nl_private_refused> {
    static constexpr unsigned char raw_type = NL_RAW_NONE;
};

#define NL_PRIVATE_TYPE(value) nl_private_type<decltype(nl_private_capture(value))>::raw_type
#define NL_PRIVATE_CAPTURE(value) nl_private_capture(value)
static inline size_t nl_private_size_of(const nl_string &value)
{
    return nl_private_string_size(&value, 0);
}
template <typename T> static inline size_t nl_private_size_of(const T &)
{
    return sizeof(T);
}
static inline char *nl_private_put(char *at, const nl_string &value)
{
    return nl_private_put_string(at, &value, 0);
}
template <typename T> static inline char *nl_private_put(char *at, const T &value)
{
    return nl_private_put_scalar(at, &value, sizeof value);
}
#define NL_PRIVATE_SIZE(value) nl_private_size_of(value)
#define NL_PRIVATE_PUT(at, value) nl_private_put(at, value)

#else

#define NL_PRIVATE_STATIC_ASSERT _Static_assert
#define NL_PRIVATE_AUTO __extension__ __auto_type

#define NL_PRIVATE_SAME(word, type, raw)                                                                               \
    static inline type nl_private_same_##word(type value)                                                              \
    {                                                                                                                  \
        return value;                                                                                                  \
    }
NL_PRIVATE_SCALARS(NL_PRIVATE_SAME)
static inline double nl_private_shorten(long double value)
{
    return NL_PRIVATE_CAST(double, value);
}

static inline nl_private_refused nl_private_refuse(const void *value)
{
    (void)value;
    nl_private_refused refused = {0};
    return refused;
}

#define NL_PRIVATE_TYPE_CASE(word, type, raw)                                                                          \
    type:                                                                                                              \
    raw,
#define NL_PRIVATE_TYPE(value)                                                                                         \
    _Generic((value), NL_PRIVATE_SCALARS(NL_PRIVATE_TYPE_CASE) long double: NL_RAW_DOUBLE, char *: NL_RAW_STRING,       \
        const char *: NL_RAW_STRING, nl_string: NL_RAW_STRING, default: NL_RAW_NONE)
#define NL_PRIVATE_CAPTURE_CASE(word, type, raw)                                                                       \
    type:                                                                                                              \
    nl_private_same_##word,
#define NL_PRIVATE_CAPTURE(value)                                                                                      \
    _Generic((value), NL_PRIVATE_SCALARS(NL_PRIVATE_CAPTURE_CASE) long double: nl_private_shorten,                      \
        char *: nl_private_text, const char *: nl_private_text, nl_string: nl_private_cut, default: nl_private_refuse)(value)
#define NL_PRIVATE_SIZE(value)                                                                                         \
    _Generic((value), nl_string : nl_private_string_size, default : nl_private_scalar_size)(&(value), sizeof(value))
#define NL_PRIVATE_PUT(at, value)                                                                                      \
    _Generic((value), nl_string : nl_private_put_string, default : nl_private_put_scalar)(at, &(value), sizeof(value))
#endif

/* ---- macros ---- */

#define NL_PRIVATE_JOIN(a, b) NL_PRIVATE_JOIN_(a, b)
#define NL_PRIVATE_JOIN_(a, b) a##b

/*
 * The number of pairs after the event name, and the form of the arguments. The form is `pairs`, `odd` (a name has no
 * value) or `many` (more than 16 pairs, as far as the macro can detect this).
 */
#define NL_PRIVATE_PAIRS(...) NL_PRIVATE_PICK(__VA_ARGS__, NL_PRIVATE_COUNTS)
#define NL_PRIVATE_FORM(...) NL_PRIVATE_PICK(__VA_ARGS__, NL_PRIVATE_FORMS)
#define NL_PRIVATE_PICK(...) NL_PRIVATE_PICK_(__VA_ARGS__)
#define NL_PRIVATE_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20,    \
                         a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38,     \
                         a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56,     \
                         a57, a58, a59, a60, a61, a62, a63, a64, a65, a66, picked, ...)                                \
    picked
#define NL_PRIVATE_COUNTS                                                                                              \
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 15, 0,   \
        14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0
#define NL_PRIVATE_FORMS                                                                                               \
    odd, many, odd, many, odd, many, odd, many, odd, many, odd, many, odd, many, odd, many, odd, many, odd, many, odd, \
        many, odd, many, odd, many, odd, many, odd, many, odd, many, odd, pairs, odd, pairs, odd, pairs, odd, pairs,   \
        odd, pairs, odd, pairs, odd, pairs, odd, pairs, odd, pairs, odd, pairs, odd, pairs, odd, pairs, odd, pairs,    \
        odd, pairs, odd, pairs, odd, pairs, odd, pairs, odd

/*
 * EACH_n(m, name, value, ..., 0) expands to m(place, name, value) for each of the n pairs. place is the number of the
 * pair, counted down from n to 1.
 */
#define NL_PRIVATE_EACH_0(m, ...)
#define NL_PRIVATE_EACH_1(m, name, value, ...) m(1, name, value)
#define NL_PRIVATE_EACH_2(m, name, value, ...) m(2, name, value) NL_PRIVATE_EACH_1(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_3(m, name, value, ...) m(3, name, value) NL_PRIVATE_EACH_2(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_4(m, name, value, ...) m(4, name, value) NL_PRIVATE_EACH_3(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_5(m, name, value, ...) m(5, name, value) NL_PRIVATE_EACH_4(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_6(m, name, value, ...) m(6, name, value) NL_PRIVATE_EACH_5(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_7(m, name, value, ...) m(7, name, value) NL_PRIVATE_EACH_6(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_8(m, name, value, ...) m(8, name, value) NL_PRIVATE_EACH_7(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_9(m, name, value, ...) m(9, name, value) NL_PRIVATE_EACH_8(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_10(m, name, value, ...) m(10, name, value) NL_PRIVATE_EACH_9(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_11(m, name, value, ...) m(11, name, value) NL_PRIVATE_EACH_10(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_12(m, name, value, ...) m(12, name, value) NL_PRIVATE_EACH_11(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_13(m, name, value, ...) m(13, name, value) NL_PRIVATE_EACH_12(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_14(m, name, value, ...) m(14, name, value) NL_PRIVATE_EACH_13(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_15(m, name, value, ...) m(15, name, value) NL_PRIVATE_EACH_14(m, __VA_ARGS__)
#define NL_PRIVATE_EACH_16(m, name, value, ...) m(16, name, value) NL_PRIVATE_EACH_15(m, __VA_ARGS__)

#define NL_PRIVATE_CHECK_IT(place, name, value)                                                                        \
    NL_PRIVATE_STATIC_ASSERT(NL_PRIVATE_TYPE(value) + 0 != 0, "field " name ": not a type that NL_EVENT can "          \
                                                              "log");
#define NL_PRIVATE_NAME_OF(place, name, value) "" name,
#define NL_PRIVATE_TYPE_OF(place, name, value) NL_PRIVATE_TYPE(value),
#define NL_PRIVATE_CAPTURE_IT(place, name, value) NL_PRIVATE_AUTO nl_value_##place##_ = NL_PRIVATE_CAPTURE(value);
#define NL_PRIVATE_ADD_SIZE(place, name, value) +NL_PRIVATE_SIZE(nl_value_##place##_)
#define NL_PRIVATE_PUT_IT(place, name, value) nl_at_ = NL_PRIVATE_PUT(nl_at_, nl_value_##place##_);

#define NL_PRIVATE_EVENT_odd(...)                                                                                      \
    NL_PRIVATE_WRONG("NL_EVENT(log, level, event, field, value, ...): a field name without a value")
#define NL_PRIVATE_EVENT_many(...) NL_PRIVATE_WRONG("an event can have at most 16 fields")
#define NL_PRIVATE_WRONG(problem)                                                                                      \
    do {                                                                                                               \
        NL_PRIVATE_STATIC_ASSERT(0, problem);                                                                          \
    } while (0)

/* Defines a static site, checks the gate, evaluates the values once, computes their size and copies them. */
#define NL_PRIVATE_EVENT_pairs(each, log_given, level_given, event_name, ...)                                          \
    do {                                                                                                               \
        NL_PRIVATE_STATIC_ASSERT(__builtin_constant_p(level_given), "the level of NL_EVENT must be a constant");       \
        NL_PRIVATE_STATIC_ASSERT((level_given) >= NL_EMERGENCY && (level_given) <= NL_DEBUG,                           \
                                 "the level of an event must be from NL_EMERGENCY to NL_DEBUG");                       \
        NL_PRIVATE_STATIC_ASSERT(sizeof("" event_name) > 1,                                                            \
                                 "NL_EVENT(log, level, event, ...): an event needs a name");                           \
        each(NL_PRIVATE_CHECK_IT,                                                                                      \
             __VA_ARGS__) static const char *const nl_names_[] = {each(NL_PRIVATE_NAME_OF, __VA_ARGS__) 0};            \
        static const unsigned char nl_types_[] = {each(NL_PRIVATE_TYPE_OF, __VA_ARGS__) 0};                            \
        static nl_event_site nl_site_ = {"" event_name, nl_names_, nl_types_, sizeof nl_types_ - 1,                    \
                                         (level_given), 0,         0,         0};                                      \
        nl_log *nl_log_ = (log_given);                                                                                 \
        nl_log_gate *nl_gate_ = NL_PRIVATE_CAST(nl_log_gate *, NL_PRIVATE_CAST(void *, nl_log_));                      \
        if (nl_gate_ != 0 &&                                                                                           \
            NL_PRIVATE_CAST(int, level_given) <= __atomic_load_n(&nl_gate_->threshold, __ATOMIC_RELAXED) &&            \
            !__atomic_load_n(&nl_site_.off, __ATOMIC_RELAXED)) {                                                       \
            nl_ring_producer *nl_ring_;                                                                                \
            each(NL_PRIVATE_CAPTURE_IT, __VA_ARGS__) size_t nl_size_ =                                                 \
                sizeof(nl_event_header) each(NL_PRIVATE_ADD_SIZE, __VA_ARGS__);                                        \
            char *nl_at_ = nl_private_begin(nl_gate_, &nl_site_, nl_size_, &nl_ring_);                                 \
            if (nl_at_ != 0) {                                                                                         \
                each(NL_PRIVATE_PUT_IT, __VA_ARGS__) nl_private_commit(nl_ring_, nl_size_);                            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#endif
