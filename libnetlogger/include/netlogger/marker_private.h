/*
 * The implementation of NL_MARKER, which is compiled into programs. Programs must not use these names; they may change
 * with the library's major version.
 *
 * The assembler writes the following data, because the compiler cannot put data of inline functions and templates into
 * sections that also have other data:
 *
 *   netlogger_NAME_semaphore  the marker's gate, in .probes: one per name and program or shared library. The gate's
 *                             first two bytes are the USDT semaphore, which the kernel increments while a tracer is
 *                             attached; the next two bytes belong to the library. One load reads all four bytes.
 *   nl_markers                an entry per place with the addresses of its gate and its text relative to the entry, so
 *                             that nothing needs relocation. The linker defines __start_nl_markers and
 *                             __stop_nl_markers.
 *   .note.stapsdt             the USDT note: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#ifndef NETLOGGER_MARKER_PRIVATE_H
#define NETLOGGER_MARKER_PRIVATE_H

NL_BEGIN_DECLS

typedef struct nl_marker_gate {
    uint32_t state;    /* first half: number of tracers; second half: 1 if the library's probes are attached. 0 means
                        * that the marker is dormant */
    uint32_t reserved; /* not used */
    void *chain;       /* the attached probes; only the library uses it */
} nl_marker_gate;

typedef struct nl_marker_entry {
    int32_t gate; /* position of the gate, in bytes from this entry */
    int32_t text; /* position, in bytes from this entry, of three texts that end with NULs: the marker's name, its
                     place, and the names of its fields */
} nl_marker_entry;

/*
 * nl_private_markers_add adds the places between `begin` and `end` when a program or shared library is loaded; repeated
 * calls have no effect. nl_private_markers_remove removes these places. The functions are weak, so that a file that
 * includes this header and has no markers does not need the library.
 */
NL_API void nl_private_markers_add(const nl_marker_entry *begin, const nl_marker_entry *end) __attribute__((weak));
NL_API void nl_private_markers_remove(const nl_marker_entry *begin) __attribute__((weak));

/* Runs the attached probes when the program passes a marker that is not dormant. */
NL_API void nl_private_marker_reached(nl_marker_gate *gate, const char *name, const nl_field *fields, size_t count);

extern const nl_marker_entry __start_nl_markers[] __attribute__((weak, visibility("hidden")));
extern const nl_marker_entry __stop_nl_markers[] __attribute__((weak, visibility("hidden")));

/* __start_nl_markers and __stop_nl_markers are 0 if there are no markers. */
__attribute__((constructor)) static void nl_private_markers_begin(void)
{
    const nl_marker_entry *begin = __start_nl_markers;
    if (begin != 0)
        nl_private_markers_add(begin, __stop_nl_markers);
}

__attribute__((destructor)) static void nl_private_markers_end(void)
{
    const nl_marker_entry *begin = __start_nl_markers;
    if (begin != 0)
        nl_private_markers_remove(begin);
}

static inline nl_field nl_private_field_of(const char *name, nl_type type)
{
    nl_field field;
    field.name.data = name;
    field.name.size = strlen(name);
    field.type = type;
    return field;
}

static inline nl_field nl_private_field_string(const char *name, nl_string value)
{
    nl_field field = nl_private_field_of(name, NL_TYPE_STRING);
    field.string = value;
    return field;
}

static inline nl_field nl_private_field_int(const char *name, int64_t value)
{
    nl_field field = nl_private_field_of(name, NL_TYPE_INT);
    field.int_value = value;
    return field;
}

static inline nl_field nl_private_field_uint(const char *name, uint64_t value)
{
    nl_field field = nl_private_field_of(name, NL_TYPE_UINT);
    field.uint_value = value;
    return field;
}

static inline nl_field nl_private_field_double(const char *name, double value)
{
    nl_field field = nl_private_field_of(name, NL_TYPE_DOUBLE);
    field.double_value = value;
    return field;
}

static inline nl_field nl_private_field_refused(const char *name, nl_private_refused value)
{
    (void)value;
    return nl_private_field_of(name, NL_TYPE_INT);
}

static inline nl_field nl_private_field_bool(const char *name, bool value)
{
    nl_field field = nl_private_field_of(name, NL_TYPE_BOOL);
    field.bool_value = value;
    return field;
}

#ifdef __cplusplus
#define NL_PRIVATE_ADDRESS(pointer) static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer))
#else
#define NL_PRIVATE_ADDRESS(pointer) ((int64_t)(intptr_t)(pointer))
#endif

/* Returns a value as the 8 bytes that tracers receive. */
static inline int64_t nl_private_traced(const nl_field *field)
{
    switch (field->type) {
    case NL_TYPE_STRING:
        return NL_PRIVATE_ADDRESS(field->string.data);
    case NL_TYPE_INT:
        return field->int_value;
    case NL_TYPE_UINT:
        return NL_PRIVATE_CAST(int64_t, field->uint_value);
    case NL_TYPE_DOUBLE:
        if (field->double_value >= 9223372036854775807.0)
            return INT64_MAX;
        return field->double_value > -9223372036854775808.0 ? NL_PRIVATE_CAST(int64_t, field->double_value) : INT64_MIN;
    case NL_TYPE_BOOL:
        return field->bool_value;
    }
    return 0;
}

NL_END_DECLS

#define NL_PRIVATE_SCALAR_FIELDS(X)                                                                                    \
    X(bool, bool)                                                                                                      \
    X(char, int)                                                                                                       \
    X(signed char, int)                                                                                                \
    X(unsigned char, uint)                                                                                             \
    X(short, int)                                                                                                      \
    X(unsigned short, uint)                                                                                            \
    X(int, int)                                                                                                        \
    X(unsigned, uint)                                                                                                  \
    X(long, int)                                                                                                       \
    X(unsigned long, uint)                                                                                             \
    X(long long, int)                                                                                                  \
    X(unsigned long long, uint)                                                                                        \
    X(float, double)                                                                                                   \
    X(double, double)

#ifdef __cplusplus
#define NL_PRIVATE_FIELD_OVERLOAD(type, kind)                                                                          \
    static inline nl_field nl_private_field(const char *name, type value)                                              \
    {                                                                                                                  \
        return nl_private_field_##kind(name, value);                                                                   \
    }
NL_PRIVATE_SCALAR_FIELDS(NL_PRIVATE_FIELD_OVERLOAD)
static inline nl_field nl_private_field(const char *name, nl_string value)
{
    return nl_private_field_string(name, value);
}
static inline nl_field nl_private_field(const char *name, nl_private_refused value)
{
    return nl_private_field_refused(name, value);
}
#define NL_PRIVATE_FIELD(name, value) nl_private_field(name, value)
#else
#define NL_PRIVATE_FIELD_CASE(type, kind)                                                                              \
    type:                                                                                                              \
    nl_private_field_##kind,
#define NL_PRIVATE_FIELD(name, value)                                                                                  \
    _Generic((value), NL_PRIVATE_SCALAR_FIELDS(NL_PRIVATE_FIELD_CASE) nl_string                                        \
             : nl_private_field_string, nl_private_refused                                                             \
             : nl_private_field_refused)(name, value)
#endif

/* ---- macros ---- */

#define NL_PRIVATE_TEXT(...) NL_PRIVATE_TEXT_(__VA_ARGS__)
#define NL_PRIVATE_TEXT_(...) #__VA_ARGS__

#define NL_PRIVATE_FIELD_IT(place, name, value) NL_PRIVATE_FIELD("" name, nl_value_##place##_),
#define NL_PRIVATE_FIELD_NAME(place, name, value) ".ascii " NL_PRIVATE_TEXT(name) ", \" \"\n"

/*
 * NL_PRIVATE_GATE_NAME is the gate's symbol in assembler code. In templates, GCC does not use the assembler name that a
 * variable's declaration gives, so the assembler code contains the name itself. Clang rejects a declaration of such a
 * variable in an unnamed namespace if the assembler defines the variable. The %c0 operand must be first. On i386, an
 * address is not a constant in position-independent code, so markers in C++ templates have no effect there.
 */
#if defined(__clang__) || defined(__i386__)
#define NL_PRIVATE_GATE_NAME(marker) "netlogger_" #marker "_semaphore"
#define NL_PRIVATE_GATE_OPERAND(marker) "i"(0)
#else
#define NL_PRIVATE_GATE_NAME(marker) "%c0"
#define NL_PRIVATE_GATE_OPERAND(marker) "i"(&netlogger_##marker##_semaphore)
#endif

/*
 * Writes the gate and the place's entry. There is one gate per name, because the linker merges the gates of all
 * translation units.
 */
#define NL_PRIVATE_GATE_ASM(gate)                                                                                      \
    ".ifndef " gate "\n"                                                                                               \
    ".pushsection .probes, \"awG\", @progbits, " gate ", comdat\n"                                                     \
    ".balign 8\n"                                                                                                      \
    ".weak " gate "\n"                                                                                                 \
    ".hidden " gate "\n"                                                                                               \
    ".type " gate ", @object\n"                                                                                        \
    ".size " gate ", 16\n"                                                                                             \
    "" gate ": .zero 16\n"                                                                                             \
    ".popsection\n"                                                                                                    \
    ".endif\n"                                                                                                         \
    ".pushsection nl_markers, \"a?\", @progbits\n"                                                                     \
    ".balign 4\n"                                                                                                      \
    "991: .4byte " gate " - 991b\n"                                                                                    \
    ".4byte 992f - 991b\n"                                                                                             \
    ".popsection\n"

/* This statement is separate and has no operands, so that the file name may contain any bytes. */
#define NL_PRIVATE_PLACE_ASM(name, fields)                                                                             \
    ".pushsection nl_marker_text, \"a?\", @progbits\n"                                                                 \
    "992: .asciz \"" name "\"\n"                                                                                       \
    ".ascii " NL_PRIVATE_TEXT(__FILE__) "\n"                                                                           \
                                        ".asciz \":" NL_PRIVATE_TEXT(__LINE__) "\"\n" fields ".asciz \"\"\n"           \
                                                                               ".popsection\n"

#if defined(__x86_64__) || defined(__aarch64__)
#define NL_PRIVATE_USDT_ASM(gate, name, arguments)                                                                     \
    "991: nop\n"                                                                                                       \
    ".pushsection .note.stapsdt, \"?\", \"note\"\n"                                                                    \
    ".balign 4\n"                                                                                                      \
    ".4byte 8, 993f - 992f, 3\n"                                                                                       \
    ".asciz \"stapsdt\"\n"                                                                                             \
    "992: .8byte 991b, _.stapsdt.base, " gate "\n"                                                                     \
    ".asciz \"netlogger\"\n"                                                                                           \
    ".asciz \"" name "\"\n"                                                                                            \
    ".asciz \"" arguments "\"\n"                                                                                       \
    "993: .balign 4\n"                                                                                                 \
    ".popsection\n"                                                                                                    \
    ".ifndef _.stapsdt.base\n"                                                                                         \
    ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                                        \
    ".weak _.stapsdt.base\n"                                                                                           \
    ".hidden _.stapsdt.base\n"                                                                                         \
    "_.stapsdt.base: .space 1\n"                                                                                       \
    ".size _.stapsdt.base, 1\n"                                                                                        \
    ".popsection\n"                                                                                                    \
    ".endif\n"
#define NL_PRIVATE_USDT(count, marker)                                                                                 \
    __asm__ __volatile__(                                                                                              \
        NL_PRIVATE_USDT_ASM(NL_PRIVATE_GATE_NAME(marker), #marker, NL_PRIVATE_JOIN(NL_PRIVATE_TRACED_TEXT_, count))    \
        :                                                                                                              \
        : NL_PRIVATE_GATE_OPERAND(marker) NL_PRIVATE_JOIN(NL_PRIVATE_TRACED_, count)                                   \
        : "memory");
#else
#define NL_PRIVATE_USDT(count, marker)
#endif

#define NL_PRIVATE_TRACED_TEXT_0
#define NL_PRIVATE_TRACED_TEXT_1 "-8@%[a0]"
#define NL_PRIVATE_TRACED_TEXT_2 NL_PRIVATE_TRACED_TEXT_1 " -8@%[a1]"
#define NL_PRIVATE_TRACED_TEXT_3 NL_PRIVATE_TRACED_TEXT_2 " -8@%[a2]"
#define NL_PRIVATE_TRACED_TEXT_4 NL_PRIVATE_TRACED_TEXT_3 " -8@%[a3]"
#define NL_PRIVATE_TRACED_TEXT_5 NL_PRIVATE_TRACED_TEXT_4 " -8@%[a4]"
#define NL_PRIVATE_TRACED_TEXT_6 NL_PRIVATE_TRACED_TEXT_5 " -8@%[a5]"
#define NL_PRIVATE_TRACED_TEXT_7 NL_PRIVATE_TRACED_TEXT_6 " -8@%[a6]"
#define NL_PRIVATE_TRACED_TEXT_8 NL_PRIVATE_TRACED_TEXT_7 " -8@%[a7]"
#define NL_PRIVATE_TRACED_OF(n) "nor"(nl_private_traced(&nl_fields_[n]))
#define NL_PRIVATE_TRACED_0
#define NL_PRIVATE_TRACED_1 , [a0] NL_PRIVATE_TRACED_OF(0)
#define NL_PRIVATE_TRACED_2 NL_PRIVATE_TRACED_1, [a1] NL_PRIVATE_TRACED_OF(1)
#define NL_PRIVATE_TRACED_3 NL_PRIVATE_TRACED_2, [a2] NL_PRIVATE_TRACED_OF(2)
#define NL_PRIVATE_TRACED_4 NL_PRIVATE_TRACED_3, [a3] NL_PRIVATE_TRACED_OF(3)
#define NL_PRIVATE_TRACED_5 NL_PRIVATE_TRACED_4, [a4] NL_PRIVATE_TRACED_OF(4)
#define NL_PRIVATE_TRACED_6 NL_PRIVATE_TRACED_5, [a5] NL_PRIVATE_TRACED_OF(5)
#define NL_PRIVATE_TRACED_7 NL_PRIVATE_TRACED_6, [a6] NL_PRIVATE_TRACED_OF(6)
#define NL_PRIVATE_TRACED_8 NL_PRIVATE_TRACED_7, [a7] NL_PRIVATE_TRACED_OF(7)

/* The assembler defines the gate, which Clang does not accept in an unnamed namespace. */
#define NL_PRIVATE_GATE_(marker)                                                                                       \
    extern nl_marker_gate netlogger_##marker##_semaphore __asm__("netlogger_" #marker "_semaphore")                    \
        __attribute__((visibility("hidden")));
#if defined(__clang__) && defined(__cplusplus)
#define NL_PRIVATE_GATE(marker)                                                                                        \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wundefined-internal\"")                      \
        NL_PRIVATE_GATE_(marker) _Pragma("clang diagnostic pop")
#else
#define NL_PRIVATE_GATE(marker) NL_PRIVATE_GATE_(marker)
#endif

/* Checks the gate, then evaluates the values once, for tracers and for the library's probes. */
#define NL_PRIVATE_MARKER_odd(...)                                                                                     \
    NL_PRIVATE_WRONG("NL_MARKER(marker, field, value, ...): a field name without a value")
#define NL_PRIVATE_MARKER_many(...) NL_PRIVATE_WRONG("a marker can have at most 8 fields")
#define NL_PRIVATE_MARKER_pairs(each, count, marker, ...)                                                              \
    do {                                                                                                               \
        NL_PRIVATE_STATIC_ASSERT((count) <= NL_MARKER_FIELDS_MAX, "a marker can have at most 8 fields");               \
        NL_PRIVATE_STATIC_ASSERT(sizeof(#marker) > 1, "NL_MARKER(marker, ...): a marker needs a name");                \
        each(NL_PRIVATE_CHECK_IT, __VA_ARGS__)                                                                         \
            NL_PRIVATE_GATE(marker) if (__builtin_expect(__atomic_load_n(&netlogger_##marker##_semaphore.state,        \
                                                                         __ATOMIC_RELAXED) != 0,                       \
                                                         0))                                                           \
        {                                                                                                              \
            __asm__ __volatile__(NL_PRIVATE_GATE_ASM(NL_PRIVATE_GATE_NAME(marker))                                     \
                                 :                                                                                     \
                                 : NL_PRIVATE_GATE_OPERAND(marker));                                                   \
            __asm__ __volatile__(NL_PRIVATE_PLACE_ASM(#marker, each(NL_PRIVATE_FIELD_NAME, __VA_ARGS__)));             \
            each(NL_PRIVATE_CAPTURE_IT, __VA_ARGS__) const nl_field nl_fields_[(count) + 1] = {                        \
                each(NL_PRIVATE_FIELD_IT, __VA_ARGS__) nl_private_field_of("", NL_TYPE_INT)};                          \
            NL_PRIVATE_USDT(count, marker)                                                                             \
            nl_private_marker_reached(&netlogger_##marker##_semaphore, #marker, nl_fields_, count);                    \
        }                                                                                                              \
    } while (0)

#endif
