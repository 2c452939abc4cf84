/*
 * The descriptors, names and detection of formats, and packed records. Programs use the descriptors instead of naming
 * formats, so that a new format is one file and one row of the table in format.c. Any thread may call these functions.
 */
#ifndef NETLOGGER_RECORD_FORMAT_H
#define NETLOGGER_RECORD_FORMAT_H

#include <netlogger.h>

/* Number of values of nl_format, including NL_FORMAT_UNKNOWN. */
#define NL_FORMAT_COUNT (NL_FORMAT_LOGFMT + 1)

typedef struct nl_format_info {
    nl_format format;
    const char *name;        /* name of the format in options such as format=NAME */
    const char *description; /* one line for lists of formats */
    const char *suffix;      /* suffix of file names, with the dot */
    bool suffix_is_format;   /* the suffix implies the format; a suffix such as ".log" implies no format */
    const char *media_type;
    bool only_pairs;                   /* each field of a line is NAME=VALUE; no field is a name alone */
    nl_string magic;                   /* first bytes of a binary format; data is NULL for text */
    const struct nl_text_format *text; /* how to read and write lines; NULL for a binary format */
} nl_format_info;

/* Returns a format's descriptor, in static storage; NULL for NL_FORMAT_UNKNOWN and invalid values. */
const nl_format_info *nl_format_get_info(nl_format format);

/* Returns whether the format is text with one record per line. */
static inline bool nl_format_is_text(nl_format format)
{
    const nl_format_info *info = nl_format_get_info(format);
    return info != NULL && info->text != NULL;
}

/*
 * Returns the names of all formats, in the order of nl_format, as the choices of an option: "|ulm|bp|nlb|logfmt". The
 * first choice, NL_FORMAT_UNKNOWN, is empty. The text is in static storage.
 */
const char *nl_format_choices(void);

/* Returns "ulm", "bp", "logfmt" or "nlb", and "unknown" for other values. The text is in static storage. */
const char *nl_format_name(nl_format format);

/* Returns the format with this name, or NL_FORMAT_UNKNOWN. Ignores the case of letters. */
nl_format nl_format_parse(const char *name);

/* Returns the format of a file by its suffix (".nlb", ".bp", ".logfmt"), or NL_FORMAT_UNKNOWN. */
nl_format nl_format_of_name(const char *name);

/* Detects the format of data[0..size), the first bytes of a log or connection. Returns NL_FORMAT_UNKNOWN on failure. */
nl_format nl_format_detect(const char *data, size_t size);

/*
 * Appends a record to `out` in a form that keeps types and nanoseconds, for programs that store records temporarily.
 * Equal records have equal bytes. Returns false and appends nothing if the record exceeds 16 MiB or 1,048,576 fields,
 * or memory runs out.
 */
bool nl_record_pack(const nl_record *record, nl_buffer *out);

/* Decodes a record that nl_record_pack encoded. The return values and lifetimes are those of nl_record_decode. */
nl_status nl_record_unpack(nl_record *record, const char *data, size_t size);

#endif
