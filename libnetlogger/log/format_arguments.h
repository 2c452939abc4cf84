/*
 * Parses printf formats of fields, such as "SEND.SZ=%ld FILE=%s".
 *
 * The format alone determines where a field ends: each value is printed separately, so that a %s with spaces, quotes
 * or NAME= is one value.
 *
 * A format is parsed once, into a plan, for any number of calls. The calling thread stores an integer or string with a
 * plain conversion, such as %d or %s, without printing it, because printing it later gives the same text. The calling
 * thread prints all other values.
 */
#ifndef NETLOGGER_LOG_FORMAT_ARGUMENTS_H
#define NETLOGGER_LOG_FORMAT_ARGUMENTS_H

#include <netlogger.h>

#include <stdarg.h>

typedef struct nl_plan_piece nl_plan_piece;

typedef struct nl_plan_field {
    const char *name; /* with a NUL; owned by the plan */
    size_t name_size;
    unsigned char raw_type;    /* NL_RAW_..., its encoding in a ring: a string or an integer of 32 or 64 bits */
    unsigned char taken_as;    /* how to read the argument (format_arguments.c) */
    size_t piece, piece_count; /* the parts (text or conversions) of the value in the format: index of the first part,
                                * and number of parts */
} nl_plan_field;

typedef struct nl_plan {
    char *format; /* a copy with NULs */
    nl_plan_field *fields;
    size_t field_count;
    nl_plan_piece *pieces;
    size_t piece_count;
} nl_plan;

/*
 * Parses a format. If the format is NULL, the plan has no fields. Returns NL_OK. On failure, sets the error, leaves the
 * plan empty and returns NL_FAILED. This happens if the format is not a sequence of NAME=value, has %n or an unknown
 * conversion, or contains a name or conversion that is too long, and if memory runs out. Free the plan with
 * nl_plan_free in either case.
 */
nl_status nl_plan_make(nl_plan *plan, const char *format);
void nl_plan_free(nl_plan *plan);

/* Returns the number of fields whose values nl_plan_take prints. */
unsigned nl_plan_printed(const nl_plan *plan);

/*
 * Stores the arguments of a call in the array `fields`, which must have space for plan->field_count fields. Each field
 * has the type NL_TYPE_STRING, NL_TYPE_INT or NL_TYPE_UINT. The strings point to arguments or into `scratch`, which the
 * function clears first. `error` is the errno value for %m. Returns NL_OK, or NL_FAILED with the reason if a value
 * cannot be printed or memory runs out. Threads may share a plan.
 */
nl_status nl_plan_take(const nl_plan *plan, nl_field *fields, nl_buffer *scratch, int error, va_list *arguments);

#endif
