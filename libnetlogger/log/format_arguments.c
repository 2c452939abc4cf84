#include "config.h"

#include "log/format_arguments.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/buffer.h"
#include "base/text.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef enum length {
    LENGTH_NONE,
    LENGTH_HH,
    LENGTH_H,
    LENGTH_L,
    LENGTH_LL,
    LENGTH_J,
    LENGTH_Z,
    LENGTH_T,
    LENGTH_LD
} length;

/* How to read the value of a field from the arguments. */
typedef enum taken_as {
    PRINTED, /* the text of the value is printed, one piece after the other */
    AS_STRING,
    AS_SCHAR,
    AS_UCHAR,
    AS_SHORT,
    AS_USHORT,
    AS_INT,
    AS_UINT,
    AS_LONG,
    AS_ULONG,
    AS_LLONG,
    AS_ULLONG,
    AS_INTMAX,
    AS_UINTMAX,
    AS_SSIZE,
    AS_SIZE,
} taken_as;

enum { SPEC_SIZE = 64, NAME_SIZE = 256 };

/* A part of a value, which is literal text or one conversion such as "%-*.3ld". */
struct nl_plan_piece {
    const char *text; /* start of the part in the plan's copy of the format */
    size_t size;
    char letter; /* letter of the conversion; '\0' means literal text */
    length length;
};

/* ---- parsing ---- */

static void skip_number(const char **at)
{
    *at += **at == '*' ? 1 : strspn(*at, "0123456789");
}

static length read_length(const char **at)
{
    static const struct {
        const char *text;
        length length;
    } lengths[] = {{"hh", LENGTH_HH}, {"h", LENGTH_H}, {"ll", LENGTH_LL}, {"l", LENGTH_L},
                   {"j", LENGTH_J},   {"z", LENGTH_Z}, {"t", LENGTH_T},   {"L", LENGTH_LD}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t size = strlen(lengths[i].text);
        if (strncmp(*at, lengths[i].text, size) == 0) {
            *at += size;
            return lengths[i].length;
        }
    }
    return LENGTH_NONE;
}

/*
 * Parses the conversion that begins at *at, and advances *at. Returns NL_FAILED if the conversion is invalid or too
 * long.
 */
static nl_status read_conversion(nl_plan_piece *piece, const char **at)
{
    piece->text = (*at)++;
    *at += strspn(*at, "#0- +'I");
    skip_number(at);
    if (**at == '.') {
        (*at)++;
        skip_number(at);
    }
    piece->length = read_length(at);
    piece->letter = **at;
    if (piece->letter == '\0' || strchr("diouxXeEfFgGaAcsp%m", piece->letter) == NULL)
        return nl_error_set(NL_ERROR_INVALID, "the format has a conversion %%%c, which cannot be logged",
                            piece->letter ? piece->letter : ' ');
    (*at)++;
    piece->size = (size_t)(*at - piece->text);
    return piece->size < SPEC_SIZE ? NL_OK : nl_error_set(NL_ERROR_LIMIT, "a conversion in the format is too long");
}

/* If a field's name and '=' begin at `at`, returns the position of the '='; otherwise, returns NULL. */
static const char *name_end(const char *at)
{
    if (!isalpha((unsigned char)*at) && *at != '_')
        return NULL;
    at += strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return *at == '=' ? at : NULL;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static nl_plan_piece *add_piece(nl_plan *plan)
{
    nl_plan_piece *pieces = nl_memory_check(reallocarray(plan->pieces, plan->piece_count + 1, sizeof *pieces));
    if (pieces == NULL)
        return NULL;
    plan->pieces = pieces;
    nl_plan_piece *piece = &plan->pieces[plan->piece_count++];
    *piece = (nl_plan_piece){0};
    return piece;
}

/*
 * Adds a literal byte. Extends the previous literal piece, unless there is a backslash between them. Returns NL_FAILED
 * if memory runs out.
 */
static nl_status add_byte(nl_plan *plan, const nl_plan_field *field, const char *at)
{
    nl_plan_piece *piece = plan->piece_count > field->piece ? &plan->pieces[plan->piece_count - 1] : NULL;
    if (piece == NULL || piece->letter != '\0' || piece->text + piece->size != at) {
        piece = add_piece(plan);
        if (piece == NULL)
            return NL_FAILED;
        piece->text = at;
    }
    piece->size++;
    return NL_OK;
}

/*
 * Parses a value from *at, after the '='. A quoted value ends at its closing quote. An unquoted value ends before the
 * next NAME= or at the end of the format, without the blanks there. Advances *at. Returns NL_FAILED if a conversion is
 * invalid or memory runs out.
 */
static nl_status read_value(nl_plan *plan, const nl_plan_field *field, const char **at)
{
    bool quoted = **at == '"';
    *at += quoted;
    while (**at != '\0') {
        if (quoted && **at == '"') {
            (*at)++;
            return NL_OK;
        }
        if (!quoted && isspace((unsigned char)**at)) {
            const char *next = skip_blanks(*at);
            if (*next == '\0' || name_end(next) != NULL) {
                *at = next;
                return NL_OK;
            }
        }
        if (**at == '%') {
            nl_plan_piece *piece = add_piece(plan);
            if (piece == NULL || read_conversion(piece, at) != NL_OK)
                return NL_FAILED;
        } else {
            *at += quoted && **at == '\\' && ((*at)[1] == '"' || (*at)[1] == '\\');
            if (add_byte(plan, field, (*at)++) != NL_OK)
                return NL_FAILED;
        }
    }
    return NL_OK;
}

static taken_as signed_of(length length)
{
    static const unsigned char by_length[] = {
        [LENGTH_NONE] = AS_INT, [LENGTH_HH] = AS_SCHAR, [LENGTH_H] = AS_SHORT,
        [LENGTH_L] = AS_LONG,   [LENGTH_LL] = AS_LLONG, [LENGTH_J] = AS_INTMAX,
        [LENGTH_Z] = AS_SSIZE,  [LENGTH_T] = PRINTED,   [LENGTH_LD] = PRINTED,
    };
    return (taken_as)by_length[length];
}

/*
 * Returns how to read a value that consists of only this conversion. Returns PRINTED if the conversion has flags, a
 * width or a precision.
 */
static taken_as plain_kind(const nl_plan_piece *piece)
{
    static const unsigned char sizes[] = {
        [LENGTH_NONE] = 2, [LENGTH_HH] = 4, [LENGTH_H] = 3, [LENGTH_L] = 3, [LENGTH_LL] = 4,
        [LENGTH_J] = 3,    [LENGTH_Z] = 3,  [LENGTH_T] = 3, [LENGTH_LD] = 3};
    taken_as kind = PRINTED;
    if (piece->size != sizes[piece->length])
        return PRINTED;
    if (piece->letter == 's')
        return piece->length == LENGTH_NONE ? AS_STRING : PRINTED;
    if (piece->letter == 'd' || piece->letter == 'i' || piece->letter == 'u')
        kind = signed_of(piece->length);
    return kind != PRINTED && piece->letter == 'u' ? kind + 1 : kind;
}

static unsigned char raw_type_of(taken_as kind)
{
    switch (kind) {
    case PRINTED:
    case AS_STRING:
        return NL_RAW_STRING;
    case AS_SCHAR:
    case AS_SHORT:
    case AS_INT:
        return NL_RAW_INT32;
    case AS_UCHAR:
    case AS_USHORT:
    case AS_UINT:
        return NL_RAW_UINT32;
    case AS_LONG:
    case AS_LLONG:
    case AS_INTMAX:
    case AS_SSIZE:
        return NL_RAW_INT64;
    default:
        return NL_RAW_UINT64;
    }
}

static nl_status format_arguments_add_field(nl_plan *plan, const char **at, const char *equals)
{
    nl_plan_field *fields = nl_memory_check(reallocarray(plan->fields, plan->field_count + 1, sizeof *fields));
    if (fields == NULL)
        return NL_FAILED;
    plan->fields = fields;
    nl_plan_field *field = &plan->fields[plan->field_count++];
    *field = (nl_plan_field){.name = *at, .name_size = (size_t)(equals - *at), .piece = plan->piece_count};
    if (field->name_size >= NAME_SIZE)
        return nl_error_set(NL_ERROR_LIMIT, "a field's name in the format is longer than %d bytes", NAME_SIZE - 1);
    *at = equals + 1;
    if (read_value(plan, field, at) != NL_OK)
        return NL_FAILED;
    field->piece_count = plan->piece_count - field->piece;
    field->taken_as = field->piece_count == 1 ? plain_kind(&plan->pieces[field->piece]) : PRINTED;
    field->raw_type = raw_type_of(field->taken_as);
    return NL_OK;
}

static nl_status read_format(nl_plan *plan, const char *format)
{
    const char *at = skip_blanks(plan->format);
    while (*at != '\0') {
        const char *equals = name_end(at);
        if (equals == NULL)
            return nl_error_set(NL_ERROR_INVALID, "the format \"%.100s\" is not a sequence of NAME=value pairs",
                                format);
        if (format_arguments_add_field(plan, &at, equals) != NL_OK)
            return NL_FAILED;
        at = skip_blanks(at);
    }
    /* After parsing, replaces each '=' with the NUL that ends the name. */
    for (size_t i = 0; i < plan->field_count; i++)
        plan->format[plan->fields[i].name - plan->format + (ptrdiff_t)plan->fields[i].name_size] = '\0';
    return NL_OK;
}

nl_status nl_plan_make(nl_plan *plan, const char *format)
{
    *plan = (nl_plan){.format = strdup(format != NULL ? format : "")};
    if (plan->format == NULL)
        return nl_memory_failed();
    nl_status status = read_format(plan, format);
    if (status != NL_OK)
        nl_plan_free(plan);
    return status;
}

void nl_plan_free(nl_plan *plan)
{
    free(plan->format);
    free(plan->fields);
    free(plan->pieces);
    *plan = (nl_plan){0};
}

unsigned nl_plan_printed(const nl_plan *plan)
{
    unsigned count = 0;
    for (size_t i = 0; i < plan->field_count; i++)
        count += plan->fields[i].taken_as == PRINTED;
    return count;
}

/* ---- printing ---- */

/* A conversion for snprintf, with a number in place of each '*'. */
typedef struct conversion {
    char text[SPEC_SIZE];
    size_t size;
    length length;
    char letter;
} conversion;

static nl_status format_arguments_add_text(conversion *c, const char *text, size_t size)
{
    if (size >= SPEC_SIZE - c->size)
        return nl_error_set(NL_ERROR_LIMIT, "a conversion in the format is too long");
    memcpy(c->text + c->size, text, size);
    c->size += size;
    c->text[c->size] = '\0';
    return NL_OK;
}

/* Replaces a '*' with the next argument. Returns NL_FAILED if the conversion becomes too long. */
static nl_status add_number(conversion *c, va_list *arguments)
{
    char number[16];
    int size = snprintf(number, sizeof number, "%d", va_arg(*arguments, int));
    /* printf ignores a negative precision, but rejects ".-1", so a negative precision is omitted. */
    if (number[0] == '-' && c->text[c->size - 1] == '.') {
        c->text[--c->size] = '\0';
        return NL_OK;
    }
    return format_arguments_add_text(c, number, (size_t)size);
}

static nl_status build_conversion(conversion *c, const nl_plan_piece *piece, va_list *arguments)
{
    *c = (conversion){.length = piece->length, .letter = piece->letter};
    const char *at = piece->text, *end = at + piece->size;
    while (at < end) {
        const char *star = memchr(at, '*', (size_t)(end - at));
        size_t size = (size_t)((star != NULL ? star : end) - at);
        if (format_arguments_add_text(c, at, size) != NL_OK || (star != NULL && add_number(c, arguments) != NL_OK))
            return NL_FAILED;
        at += size + (star != NULL);
    }
    return NL_OK;
}

/* Prints to the scratch buffer. -Wformat cannot check the conversion, but read_conversion has checked it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#define PRINT(value)                                                                                                   \
    do {                                                                                                               \
        int size_ = snprintf(out->data + out->size, out->capacity - out->size, c->text, value);                        \
        if (size_ < 0)                                                                                                 \
            return nl_error_set(NL_ERROR_INVALID, "%s cannot be printed", c->text);                                    \
        if ((size_t)size_ >= out->capacity - out->size) {                                                              \
            if (!nl_buffer_reserve(out, (size_t)size_ + 1))                                                            \
                return NL_FAILED;                                                                                      \
            snprintf(out->data + out->size, out->capacity - out->size, c->text, value);                                \
        }                                                                                                              \
        out->size += (size_t)size_;                                                                                    \
        return NL_OK;                                                                                                  \
    } while (0)

#define PRINT_ARGUMENT(type)                                                                                           \
    do {                                                                                                               \
        type value_ = va_arg(*arguments, type);                                                                        \
        PRINT(value_);                                                                                                 \
    } while (0)

static nl_status print_integer(nl_buffer *out, const conversion *c, va_list *arguments)
{
    switch (c->length) {
    case LENGTH_L:
        PRINT_ARGUMENT(long);
    case LENGTH_LL:
        PRINT_ARGUMENT(long long);
    case LENGTH_J:
        PRINT_ARGUMENT(intmax_t);
    case LENGTH_Z:
        PRINT_ARGUMENT(size_t);
    case LENGTH_T:
        PRINT_ARGUMENT(ptrdiff_t);
    default: /* char and short are passed as int; the modifier in the text truncates them */
        PRINT_ARGUMENT(int);
    }
}

static nl_status print_string(nl_buffer *out, const conversion *c, va_list *arguments)
{
    if (c->length == LENGTH_L) {
        const wchar_t *wide = va_arg(*arguments, const wchar_t *);
        PRINT(wide != NULL ? wide : L"(null)");
    }
    const char *text = va_arg(*arguments, const char *);
    text = text != NULL ? text : "(null)";
    if (c->size > 2)
        PRINT(text);
    return nl_buffer_append_text(out, text) ? NL_OK : NL_FAILED; /* a plain %s may have any length */
}

static nl_status print_conversion(nl_buffer *out, const conversion *c, va_list *arguments, int error)
{
    if (!nl_buffer_reserve(out, SPEC_SIZE))
        return NL_FAILED;
    switch (c->letter) {
    case '%':
        return nl_buffer_append(out, "%", 1) ? NL_OK : NL_FAILED;
    case 'm': {
        char scratch[128];
        const char *message = strerror_r(error, scratch, sizeof scratch);
        return nl_buffer_append_text(out, message) ? NL_OK : NL_FAILED;
    }
    case 's':
        return print_string(out, c, arguments);
    case 'c':
        if (c->length == LENGTH_L)
            PRINT_ARGUMENT(wint_t);
        PRINT_ARGUMENT(int);
    case 'p':
        PRINT_ARGUMENT(void *);
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        return print_integer(out, c, arguments);
    default:
        if (c->length == LENGTH_LD)
            PRINT_ARGUMENT(long double);
        PRINT_ARGUMENT(double);
    }
}
#pragma GCC diagnostic pop

static nl_status print_value(nl_buffer *out, const nl_plan *plan, const nl_plan_field *field, int error,
                             va_list *arguments)
{
    for (size_t i = field->piece; i < field->piece + field->piece_count; i++) {
        const nl_plan_piece *piece = &plan->pieces[i];
        conversion c;
        if (piece->letter == '\0' && !nl_buffer_append(out, piece->text, piece->size))
            return NL_FAILED;
        if (piece->letter != '\0' &&
            (build_conversion(&c, piece, arguments) != NL_OK || print_conversion(out, &c, arguments, error) != NL_OK))
            return NL_FAILED;
    }
    return NL_OK;
}

/* ---- arguments ---- */

/* Reads a value that is not printed. The caller passes char and short as int. */
static void plan_read_value(nl_field *field, taken_as kind, va_list *arguments)
{
    const char *text;
    field->type = NL_TYPE_INT;
    switch (kind) {
#define TAKE(kind_, type_, member, argument, c_type)                                                                   \
    case kind_:                                                                                                        \
        field->type = type_;                                                                                           \
        field->member = (c_type)va_arg(*arguments, argument);                                                          \
        return;
        TAKE(AS_SCHAR, NL_TYPE_INT, int_value, int, signed char)
        TAKE(AS_UCHAR, NL_TYPE_UINT, uint_value, int, unsigned char)
        TAKE(AS_SHORT, NL_TYPE_INT, int_value, int, short)
        TAKE(AS_USHORT, NL_TYPE_UINT, uint_value, int, unsigned short)
        TAKE(AS_INT, NL_TYPE_INT, int_value, int, int)
        TAKE(AS_UINT, NL_TYPE_UINT, uint_value, unsigned, unsigned)
        TAKE(AS_LONG, NL_TYPE_INT, int_value, long, long)
        TAKE(AS_ULONG, NL_TYPE_UINT, uint_value, unsigned long, unsigned long)
        TAKE(AS_LLONG, NL_TYPE_INT, int_value, long long, long long)
        TAKE(AS_ULLONG, NL_TYPE_UINT, uint_value, unsigned long long, unsigned long long)
        TAKE(AS_INTMAX, NL_TYPE_INT, int_value, intmax_t, intmax_t)
        TAKE(AS_UINTMAX, NL_TYPE_UINT, uint_value, uintmax_t, uintmax_t)
        TAKE(AS_SSIZE, NL_TYPE_INT, int_value, ssize_t, ssize_t)
        TAKE(AS_SIZE, NL_TYPE_UINT, uint_value, size_t, size_t)
#undef TAKE
    case AS_STRING:
    case PRINTED:
        break;
    }
    text = va_arg(*arguments, const char *);
    text = text != NULL ? text : "(null)";
    field->type = NL_TYPE_STRING;
    field->string = nl_string_of(text);
}

/* Sets the strings of printed values after all values are printed, because printing can move scratch in memory. */
static void find_printed(const nl_plan *plan, nl_field *fields, const nl_buffer *scratch)
{
    size_t at = 0;
    for (size_t i = 0; i < plan->field_count; i++)
        if (plan->fields[i].taken_as == PRINTED) {
            fields[i].string.data = scratch->data != NULL ? scratch->data + at : "";
            at += fields[i].string.size;
        }
}

nl_status nl_plan_take(const nl_plan *plan, nl_field *fields, nl_buffer *scratch, int error, va_list *arguments)
{
    bool printed = false;
    scratch->size = 0;
    for (size_t i = 0; i < plan->field_count; i++) {
        const nl_plan_field *field = &plan->fields[i];
        fields[i].name = (nl_string){field->name, field->name_size};
        if (field->taken_as != PRINTED) {
            plan_read_value(&fields[i], (taken_as)field->taken_as, arguments);
            continue;
        }
        size_t before = scratch->size;
        if (print_value(scratch, plan, field, error, arguments) != NL_OK)
            return NL_FAILED;
        fields[i].type = NL_TYPE_STRING;
        fields[i].string.size = scratch->size - before;
        printed = true;
    }
    if (printed)
        find_printed(plan, fields, scratch);
    return NL_OK;
}
