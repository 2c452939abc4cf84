/* What programs ask about a format, so that none of them has to know the formats. */
#ifndef NETLOGGER_RECORD_FORMAT_INFO_H
#define NETLOGGER_RECORD_FORMAT_INFO_H

#include <netlogger.h>

/* Of values of nl_format, NL_FORMAT_UNKNOWN among them. */
#define NL_FORMAT_COUNT (NL_FORMAT_LOGFMT + 1)

/*
 * A format's descriptor. Programs ask it instead of naming formats themselves, so that a new format is one file and one
 * row of the table in format.c. Static storage; any thread.
 */
typedef struct nl_format_info {
    nl_format format;
    const char *name;        /* for options such as format=NAME */
    const char *description; /* one line, for lists of formats */
    const char *suffix;      /* of names of files, with its dot */
    bool suffix_is_format;  /* a file with that suffix is in this format when nothing else says; ".log" may be in any */
    const char *media_type; /* for HTTP */
    nl_string magic;        /* the first bytes of all input in a binary format; of text data is NULL */
    const struct nl_text_format *text; /* how one record a line is read and written; NULL: the format is binary */
} nl_format_info;

/* The descriptor of a format; NULL for NL_FORMAT_UNKNOWN and values that are no format. */
const nl_format_info *nl_format_get_info(nl_format format);

/* Whether the format is text of one record a line. */
static inline bool nl_format_is_text(nl_format format)
{
    const nl_format_info *info = nl_format_get_info(format);
    return info != NULL && info->text != NULL;
}

/* The names of all formats as choices of an option, the index being the nl_format: "|ulm|bp|nlb|logfmt". Static. */
const char *nl_format_choices(void);

#endif
