#include "config.h"

#include "log/format_arguments.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

enum { SPEC_SIZE = 64 };

/* One conversion, "%-8.3ld": its text with any '*' replaced by the number it stood for, and what it takes. */
typedef struct conversion {
    char text[SPEC_SIZE];
    size_t size;
    length length;
    char letter;
} conversion;

static nl_status add_text(conversion *c, const char *text, size_t size)
{
    if (size >= SPEC_SIZE - c->size)
        return nl_error_set("a conversion in the format is too long");
    memcpy(c->text + c->size, text, size);
    c->size += size;
    c->text[c->size] = '\0';
    return NL_OK;
}

/* Digits, or a '*' whose value is the next argument. */
static nl_status read_number(conversion *c, const char **at, va_list *arguments)
{
    if (**at == '*') {
        char number[16];
        int size = snprintf(number, sizeof number, "%d", va_arg(*arguments, int));
        (*at)++;
        /* printf takes a negative precision as none; written out, it would be none too (".-1" is refused): leave it
         * out. */
        if (number[0] == '-' && c->text[c->size - 1] == '.') {
            c->text[--c->size] = '\0';
            return NL_OK;
        }
        return add_text(c, number, (size_t)size);
    }
    size_t size = strspn(*at, "0123456789");
    *at += size;
    return add_text(c, *at - size, size);
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

/* Reads the conversion behind a '%'. */
static nl_status read_conversion(conversion *c, const char **at, va_list *arguments)
{
    *c = (conversion){.text = "%", .size = 1};
    size_t flags = strspn(*at, "#0- +'I");
    if (add_text(c, *at, flags) != NL_OK)
        return NL_FAILED;
    *at += flags;
    if (read_number(c, at, arguments) != NL_OK)
        return NL_FAILED;
    if (**at == '.') {
        (*at)++;
        if (add_text(c, ".", 1) != NL_OK || read_number(c, at, arguments) != NL_OK)
            return NL_FAILED;
    }
    const char *modifier = *at;
    c->length = read_length(at);
    c->letter = **at;
    if (c->letter == '\0' || strchr("diouxXeEfFgGaAcsp%m", c->letter) == NULL)
        return nl_error_set("the format has a conversion %%%c, which cannot be logged", c->letter ? c->letter : ' ');
    (*at)++;
    return add_text(c, modifier, (size_t)(*at - modifier));
}

/* Prints into the scratch buffer with snprintf's arguments; -Wformat cannot see through, the conversion was checked
 * above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#define PRINT(value)                                                                                                   \
    do {                                                                                                               \
        int size_ = snprintf(out->data + out->size, out->capacity - out->size, c->text, value);                        \
        if (size_ < 0)                                                                                                 \
            return nl_error_set("%s cannot be printed", c->text);                                                      \
        if ((size_t)size_ >= out->capacity - out->size) {                                                              \
            nl_buffer_reserve(out, (size_t)size_ + 1);                                                                 \
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
    default: /* char and short come as int; the modifier in the text cuts them */
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
    nl_buffer_append(out, text, strlen(text)); /* a plain %s of any length */
    return NL_OK;
}

static nl_status print_conversion(nl_buffer *out, const conversion *c, va_list *arguments, int saved_errno)
{
    nl_buffer_reserve(out, SPEC_SIZE);
    switch (c->letter) {
    case '%':
        nl_buffer_append(out, "%", 1);
        return NL_OK;
    case 'm': {
        char words[128];
        const char *message = strerror_r(saved_errno, words, sizeof words);
        nl_buffer_append(out, message, strlen(message));
        return NL_OK;
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

/* The '=' of the NAME= at at; NULL when there is none. */
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

/*
 * Prints one value into scratch, *at behind the '='. It ends before the blanks in front of the next NAME=, or with the
 * quote that closes it when it begins with one.
 */
static nl_status print_value(nl_buffer *scratch, const char **at, va_list *arguments, int saved_errno)
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
            conversion c;
            (*at)++;
            if (read_conversion(&c, at, arguments) != NL_OK ||
                print_conversion(scratch, &c, arguments, saved_errno) != NL_OK)
                return NL_FAILED;
        } else {
            *at += quoted && **at == '\\' && ((*at)[1] == '"' || (*at)[1] == '\\');
            nl_buffer_append(scratch, (*at)++, 1);
        }
    }
    return NL_OK;
}

nl_status nl_format_arguments(nl_record *record, nl_buffer *scratch, const char *format, va_list *arguments)
{
    int saved_errno = errno;
    const char *at = skip_blanks(format);
    while (*at != '\0') {
        const char *equals = name_end(at);
        if (equals == NULL)
            return nl_error_set("the format \"%.100s\" is not a row of NAME=value", format);
        char name[256];
        size_t size = (size_t)(equals - at);
        if (size >= sizeof name)
            return nl_error_set("a field's name in the format is longer than %zu bytes", sizeof name - 1);
        memcpy(name, at, size);
        name[size] = '\0';
        at = equals + 1;
        scratch->size = 0;
        if (print_value(scratch, &at, arguments, saved_errno) != NL_OK)
            return NL_FAILED;
        nl_record_add_string(record, name, scratch->size > 0 ? scratch->data : "", scratch->size);
        at = skip_blanks(at);
    }
    return NL_OK;
}
