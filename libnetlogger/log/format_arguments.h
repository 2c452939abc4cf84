/*
 * printf formats that hold fields: "SEND.SZ=%ld FILE=%s".
 *
 * The format, never what is put into it, says where a field ends: each value is printed by itself, so that a %s may
 * bring blanks, quotes or NAME= with it and still be one value.
 *
 * A format is read once, into a plan. By it the arguments of any number of calls are taken: a value that is one plain
 * conversion of an integer or a string is taken as it is, since writing it as text gives what printf gives; any other
 * is printed.
 */
#ifndef NETLOGGER_LOG_FORMAT_ARGUMENTS_H
#define NETLOGGER_LOG_FORMAT_ARGUMENTS_H

#include <netlogger.h>

#include <stdarg.h>

typedef struct nl_plan_piece nl_plan_piece;

typedef struct nl_plan_field {
    const char *name; /* NUL-terminated; the plan's */
    size_t name_size;
    unsigned char raw_type; /* NL_RAW_..., how its values lie in a ring: a string, or an integer of 32 or 64 bits */
    unsigned char taken_as;
    size_t piece, piece_count; /* of what its value is made */
} nl_plan_field;

typedef struct nl_plan {
    char *format; /* a copy, cut up */
    nl_plan_field *fields;
    size_t field_count;
    nl_plan_piece *pieces;
    size_t piece_count;
} nl_plan;

/*
 * Reads a format. NL_OK, or NL_FAILED with the reason and an empty plan when it is not a row of NAME=value, holds %n,
 * or a conversion that printf(3) has not. NULL is a format without fields. To be freed with nl_plan_free either way.
 */
nl_status nl_plan_make(nl_plan *plan, const char *format);
void nl_plan_free(nl_plan *plan);

/* How many fields' values are printed. */
unsigned nl_plan_printed(const nl_plan *plan);

/*
 * Takes the arguments of a call into fields, of which there is room for the plan's field_count: of type NL_TYPE_STRING,
 * NL_TYPE_INT or NL_TYPE_UINT as their raw types say. Strings view the arguments, or scratch, which is emptied first.
 * error is what %m stands for. NL_FAILED with the reason when a value cannot be printed. Any number of threads may use
 * a plan at once.
 */
nl_status nl_plan_take(const nl_plan *plan, nl_field *fields, nl_buffer *scratch, int error, va_list *arguments);

#endif
