/*
 * Conversions: the foreign formats that programs read and write.
 *
 *   bytes -> importer -> record -> sink (--where) -> exporter -> bytes
 *
 * A format is one file here with an importer, an exporter, or both, and a line in formats.c. nlconv cuts its
 * input into chunks of whole records and has several threads convert them at once (nltools/pipeline/); an importer or
 * exporter that needs to see all records in their order says so (in_order). doc/formats.md says what each format's
 * fields become.
 */
#ifndef NETLOGGER_CONVERT_CONVERT_H
#define NETLOGGER_CONVERT_CONVERT_H

#include "program/program.h"

/* What a format cannot hold of a record, counted, and said once at the end. */
typedef enum loss {
    LOSS_TYPES,    /* text only: that a value was a number or a truth */
    LOSS_UNSIGNED, /* that an integer was an unsigned one */
    LOSS_EMPTY,    /* that a standard field was there, but empty */
    LOSS_NAMES,    /* bytes of a name that no field's name may have */
    LOSS_SPELLING, /* a level that is spelt as none of the format's */
    LOSS_FIELDS,   /* whole fields */
    LOSS_TIMES,    /* digits of a time */
    LOSS_RECORDS,  /* whole records */
    LOSS_COUNT,
} loss;

/* Says on standard error what a format did not hold. */
void losses_say(const char *format, const uint64_t losses[LOSS_COUNT]);

typedef struct exporter exporter;
typedef struct importer importer;

/* Input that could not be read: as nl_malformed, counted from the start of the chunk. The text is in the sink. */
typedef struct report {
    uint64_t line; /* from 1; 0: none */
    uint64_t offset;
    size_t reason, text, text_size; /* offsets in the sink's report_text */
} report;

/* What is known of an input besides its bytes. */
typedef struct import_about {
    const char *host;   /* of records that name none; NULL: they have none */
    bool has_base;      /* --base was given: */
    int64_t base_ns;    /* what times without a date count from */
    int64_t written_ns; /* when the input was written last */
} import_about;

/* What becomes of the records of a chunk. One thread at a time. */
typedef struct sink sink;
struct sink {
    exporter *out;
    nl_buffer bytes; /* what the exporter made */
    const nl_filter *where;
    nl_fraction fraction;
    const import_about *about; /* NULL: nothing is known */
    bool undated;              /* there were times that count from nobody knows when */
    bool strict;               /* stop at the first malformed piece: */
    bool stopped;              /* importers may look at it; nothing is taken any more */
    uint64_t records;
    uint64_t unterminated;
    uint64_t losses[LOSS_COUNT];
    uint64_t lines_before; /* of the input; only known to importers that are in order */
    report *reports;
    size_t report_count, report_capacity;
    nl_buffer report_text;
    void (*drain)(sink *s); /* takes the bytes; NULL: they gather */
    void *drain_user;
};

/*
 * Takes a record from an importer. typed: its values have types; otherwise they are all text that may be meant as
 * numbers.
 */
void sink_put(sink *s, const nl_record *record, bool typed);

/* Notes what could not be read; reason and text are copied. */
void sink_malformed(sink *s, uint64_t line, uint64_t offset, const char *reason, const char *text, size_t size);

/*
 * Reports to reading what could not be read, of a chunk that lies at offset in name, behind so many lines; then the
 * sink has no reports.
 */
void sink_report(sink *s, program_reading *reading, const char *name, uint64_t lines, uint64_t offset);

/* Frees the buffers of a sink. */
void sink_free(sink *s);

/* Lets go of what an exporter made so far, where the sink has somewhere for it to go. */
static inline void sink_drain(sink *s)
{
    if (s->drain != NULL && s->bytes.size >= 1 << 20)
        s->drain(s);
}

static inline void sink_lose(sink *s, loss what)
{
    s->losses[what]++;
}

/* The first member of each format's exporter. */
struct exporter {
    const struct exporter_kind *kind;
    void *shared;
};

typedef struct exporter_kind {
    const char *name;
    const char *what; /* for --help */
    bool in_order;    /* a single exporter gets all records in their order */
    bool text_only;   /* types are lost, and numbers need not be told */
    nl_format format; /* of the library's formats, which one */
    /* What all exporters of one output share, made before any is opened; may be NULL. drawing_path: an nlv file that
     * says what the lifelines are; NULL: none. NULL, after having said why, when it can't be. */
    void *(*share)(const char *drawing_path);
    void (*unshare)(void *shared);
    /*
     * When set, a first pass over the whole input is made with this one, whose exporters' bytes are given to learn,
     * chunk by chunk in their order. False, after having said why, when the output can't be made.
     */
    const struct exporter_kind *first_pass;
    bool (*learn)(void *shared, nl_string bytes);
    size_t size;                         /* of the format's exporter, which starts as zeros */
    void (*open)(exporter *e);           /* initializes it; may be NULL */
    void (*close)(exporter *e);          /* frees its members; may be NULL */
    void (*begin)(exporter *e, sink *s); /* the output's head; may be NULL */
    void (*put)(exporter *e, const nl_record *record, bool typed, sink *s);
    void (*flush)(exporter *e, sink *s); /* at the end of a chunk; may be NULL */
    void (*end)(exporter *e, sink *s);   /* the output's foot; may be NULL */
} exporter_kind;

/* The first member of each format's importer. */
struct importer {
    const struct importer_kind *kind;
    void *shared;
};

typedef struct importer_kind {
    const char *name;
    const char *what; /* for --help */
    bool in_order;    /* a single importer gets all chunks in their order */
    bool blocks;      /* a format of nl_format, which the library's decoder cuts */
    nl_format format; /* of these, which one; unknown: told line by line */
    /* Whether bytes from the start of an input look like this format. */
    bool (*detect)(const char *data, size_t size);
    /* How many bytes at the start of the input are its head, which says how to read the rest; 0: more are needed. all:
     * no more come. Makes *shared, which unshare frees. May be NULL. */
    size_t (*head)(const char *data, size_t size, bool all, void **shared, sink *s);
    void (*unshare)(void *shared);
    /* How many of the bytes, which begin where a record begins, are whole records; 0: none. NULL: whole lines are. */
    size_t (*cut)(const char *data, size_t size);
    size_t size;               /* of the format's importer */
    void (*open)(importer *i); /* as in exporter_kind */
    void (*close)(importer *i);
    void (*read)(importer *i, const char *data, size_t size, sink *s); /* whole records */
    void (*end)(importer *i, sink *s);                                 /* after the last; may be NULL */
    /* Instead of all the above: reads a directory, and drains the sink from time to time. False with the error set. */
    bool (*read_path)(const char *path, sink *s);
    bool (*detect_path)(const char *path); /* whether a folder looks like it */
} importer_kind;

/* Opens an exporter or importer. shared must outlive it. */
exporter *exporter_open(const exporter_kind *kind, void *shared);
void exporter_close(exporter *e);
importer *importer_open(const importer_kind *kind, void *shared);
void importer_close(importer *i);

/* The rows of the tables of formats, those of nl_format among them; NULL behind the last. */
const exporter_kind *exporter_kind_at(size_t index);
const importer_kind *importer_kind_at(size_t index);
const exporter_kind *exporter_kind_find(const char *name);
const importer_kind *importer_kind_find(const char *name);

/* The format that an input seems to be in; NULL when it does not tell. */
const importer_kind *importer_kind_detect(const char *data, size_t size);

/* The same of a folder. */
const importer_kind *importer_kind_detect_folder(const char *path);

/* The rows of a format of nl_format, which the library reads and writes. */
const exporter_kind *netlogger_exporter_kind(nl_format format);
const importer_kind *netlogger_importer_kind(nl_format format);

/* The other rows, one format a file. */
extern const exporter_kind json_exporter, csv_exporter, xml_exporter, otlp_exporter, chrome_exporter, perfetto_exporter,
    spans_exporter;
extern const importer_kind json_importer, csv_importer, xml_importer, otlp_importer, chrome_importer, journal_importer,
    strace_importer, perf_importer, ftrace_importer, ctf_importer;

#endif
