/*
 * Conversions between NetLogger's records and foreign formats.
 *
 *   bytes -> importer -> record -> sink (--where) -> exporter -> bytes
 *
 * A format has an importer (a row in importers.c), an exporter (a row in exporters.c), or both. Importers and exporters
 * share only the state that their functions `head` and `share` create. Therefore, several threads can convert pieces of
 * an input at the same time, each with its own importer and exporter (nltools/pipeline). If a kind has in_order, one
 * thread converts all records. doc/formats.md describes the conversion of each format's fields.
 */
#ifndef NETLOGGER_CONVERT_CONVERT_H
#define NETLOGGER_CONVERT_CONVERT_H

#include "program/program.h"

/* Information that a format cannot represent. A sink counts each kind of loss, and losses_report prints the counts. */
typedef enum loss {
    LOSS_TYPES,    /* types of values, which text formats do not have */
    LOSS_UNSIGNED, /* unsigned types of integers, which are written as signed */
    LOSS_EMPTY,    /* empty standard fields */
    LOSS_NAMES,    /* bytes of names that the format does not allow */
    LOSS_FIELDS,   /* whole fields */
    LOSS_TIMES,    /* times before 1970, which are written as 0 */
    LOSS_RECORDS,  /* whole records */
    LOSS_COUNT,
} loss;

/* Prints a line on standard error, with the count, for each kind of loss that has occurred. */
void losses_report(const char *format, const uint64_t losses[LOSS_COUNT]);

typedef struct exporter exporter;
typedef struct importer importer;

/* Malformed input. The line and the offset in bytes count from the start of the piece. */
typedef struct report {
    uint64_t line; /* the first line is 1; 0 means unknown */
    uint64_t offset;
    size_t reason, text, text_size; /* offsets in the sink's report_text, and size of the text in bytes */
} report;

/* Properties of an input that are not in its bytes. */
typedef struct import_about {
    const char *host;       /* HOST of records that do not name a host; or NULL */
    const char *time_field; /* name of the field with the time; or NULL */
    bool has_base;
    int64_t base_ns;    /* if has_base is set, the origin (since 1970) of times that have no date */
    int64_t written_ns; /* time of the last change of the input, since 1970 */
} import_about;

/* The destination of the records of a piece. Only one thread at a time may use a sink. */
typedef struct sink sink;
struct sink {
    exporter *out;
    nl_buffer bytes; /* output of the exporter */
    const nl_filter *where;
    nl_fraction fraction;
    const import_about *about; /* NULL if nothing is known */
    bool undated;              /* the input has times with an unknown origin */
    bool strict;               /* ignore all records after malformed input */
    bool stopped;              /* the sink ignores all further records; importers may return early */
    uint64_t seen;             /* number of records that the importer has passed to the sink */
    uint64_t records;          /* number of records that matched `where` */
    uint64_t unterminated;
    uint64_t losses[LOSS_COUNT];
    uint64_t lines_before; /* number of lines of the input before this piece; only for importers with in_order */
    report *reports;
    size_t report_count, report_capacity;
    nl_buffer report_text;
    void (*drain)(sink *s); /* consumes the bytes; NULL: the bytes accumulate */
    void *drain_user;
};

/*
 * Passes a record to the exporter if `where` matches it. If `typed` is true, the types of values are known. Otherwise,
 * a text may represent a number.
 */
void sink_put(sink *s, const nl_record *record, bool typed);

/* Adds a report of malformed input. Copies reason and text. */
void sink_malformed(sink *s, uint64_t line, uint64_t offset, const char *reason, const char *text, size_t size);

/*
 * Passes the reports of a piece to `reading` and removes them from the sink. The piece begins after `lines` lines and
 * `offset` bytes of the input `name`.
 */
void sink_report(sink *s, program_reading *reading, const char *name, uint64_t lines, uint64_t offset);

/* Frees the buffers of a sink. */
void sink_free(sink *s);

/* Calls the sink's drain if many bytes of records or reports have accumulated. */
static inline void sink_drain(sink *s)
{
    if (s->drain != NULL && s->bytes.size + s->report_text.size >= 1 << 20)
        s->drain(s);
}

static inline void sink_lose(sink *s, loss what)
{
    s->losses[what]++;
}

/* The first member of each format's exporter. */
struct exporter {
    const struct exporter_kind *kind;
    void *shared; /* the result of share */
};

typedef struct exporter_kind {
    const char *name;
    const char *what; /* description, for lists of formats */
    bool in_order;    /* one exporter gets all records in their order */
    bool text_only;   /* values lose their types */
    nl_format format; /* format of the library; unknown for a foreign format */
    /*
     * Creates the state that all exporters of an output share, before the exporters are opened; may be NULL.
     * drawing_path is an nlv configuration file that defines the lifelines, or NULL. On failure, reports the error and
     * returns NULL.
     */
    void *(*share)(const char *drawing_path);
    void (*unshare)(void *shared);
    /*
     * If first_pass is not NULL, the caller first reads the whole input with exporters of the kind first_pass. The
     * caller passes the output of these exporters, in order, to first_pass->learn. `learn` returns false after
     * reporting that the output cannot be created.
     */
    const struct exporter_kind *first_pass;
    bool (*learn)(void *shared, nl_string bytes);
    size_t size;                         /* size of the format's exporter in bytes; it starts as zeros */
    void (*open)(exporter *e);           /* initializes the exporter; may be NULL */
    void (*close)(exporter *e);          /* frees the exporter's members; may be NULL */
    void (*begin)(exporter *e, sink *s); /* writes the beginning of the output; may be NULL */
    void (*put)(exporter *e, const nl_record *record, bool typed, sink *s);
    void (*flush)(exporter *e, sink *s); /* called at the end of a piece; may be NULL */
    void (*end)(exporter *e, sink *s);   /* writes the end of the output; may be NULL */
} exporter_kind;

/* The first member of each format's importer. */
struct importer {
    const struct importer_kind *kind;
    void *shared; /* the result of head */
};

typedef struct importer_kind {
    const char *name;
    const char *what; /* description, for lists of formats */
    bool in_order;    /* one importer gets all pieces in their order */
    bool blocks;      /* a format of the library, in which blocks and text may be mixed */
    nl_format format; /* format of the library; if it is unknown, the decoder detects the format of each line */
    /* Returns whether an input that begins with these bytes is in this format. */
    bool (*detect)(const char *data, size_t size);
    /*
     * Reads the header of the input, which determines how to read the rest; may be NULL. Sets *shared, which unshare
     * frees, and returns the size of the header. Leaves *shared NULL if more bytes are needed. `all` means that there
     * are no more bytes.
     */
    size_t (*head)(const char *data, size_t size, bool all, void **shared, sink *s);
    void (*unshare)(void *shared);
    /*
     * Returns the size in bytes of the whole records at the beginning of the data. If cut is NULL, records are lines.
     */
    size_t (*cut)(const char *data, size_t size);
    size_t size;                /* size of the format's importer in bytes; it starts as zeros */
    void (*open)(importer *i);  /* initializes the importer; may be NULL */
    void (*close)(importer *i); /* frees the importer's members; may be NULL */
    void (*read)(importer *i, const char *data, size_t size, sink *s); /* whole records */
    void (*end)(importer *i, sink *s);                                 /* called after the last piece; may be NULL */
    void (*pause)(importer *i, sink *s); /* called when a growing source has no more data at present; may be NULL */
    /*
     * Reads a whole directory and drains the sink regularly. Formats of directories have this function instead of the
     * functions above. Returns false and sets the error on failure.
     */
    bool (*read_path)(const char *path, sink *s);
    bool (*detect_path)(const char *path);
} importer_kind;

/* Opens an exporter or importer. `shared` must outlive it. */
exporter *exporter_open(const exporter_kind *kind, void *shared);
void exporter_close(exporter *e);
importer *importer_open(const importer_kind *kind, void *shared);
void importer_close(importer *i);

/* Return the row at an index of the table of formats, or NULL after the last row. */
const exporter_kind *exporter_kind_at(size_t index);
const importer_kind *importer_kind_at(size_t index);

/* Return the row with a name, or NULL. */
const exporter_kind *exporter_kind_find(const char *name);
const importer_kind *importer_kind_find(const char *name);

/* Returns the format of an input that begins with these bytes, or NULL if it is unknown. */
const importer_kind *importer_kind_detect(const char *data, size_t size);

/* Returns the format of a directory, or NULL. */
const importer_kind *importer_kind_detect_directory(const char *path);

/* Return the row of a format of the library. */
const exporter_kind *netlogger_exporter_kind(nl_format format);
const importer_kind *netlogger_importer_kind(nl_format format);

/* The rows of the other formats. */
extern const exporter_kind json_exporter, csv_exporter, xml_exporter, otlp_exporter, otlp_proto_exporter,
    chrome_exporter, perfetto_exporter, spans_exporter;
extern const importer_kind json_importer, csv_importer, xml_importer, otlp_importer, otlp_proto_importer,
    chrome_importer, journal_importer, syslog_importer, strace_importer, perf_importer, ftrace_importer, audit_importer,
    pairs_importer, ctf_importer, multiline_importer;

#endif
