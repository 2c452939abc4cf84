/*
 * A log that records come from: a file, which may grow, be cut short or be replaced, a pipe, a collector. One thread,
 * the model's loader.
 */
#ifndef NLV_SOURCE_H
#define NLV_SOURCE_H

#include "model/prints.h"
#include "model/scan.h"
#include "model/text_file.h"

#include "program/program.h"

typedef struct source {
    char *url;
    char *path; /* of a file; NULL of all else */
    bool follow;
    program_reading *reading;
    text_file text;      /* fd -1: none yet */
    unsigned number;     /* of that text */
    uint64_t at;         /* what is before was scanned */
    prints prints;       /* of what was scanned of the text */
    uint64_t full_at;    /* by the model: what is before is in its store of all */
    nl_decoder *decoder; /* of lines that are not plain */
    program_log *reader; /* of what is no text: its records go into text, a spill */
    bool reader_ended;
    bool ended;   /* nothing will come any more */
    char *notice; /* what has happened to it, to be told and freed; NULL: nothing */
    bool is_emptied;
    bool is_gone; /* its file has no name any more, which was told */
    bool failed;  /* spilling did not work; it was said */
} source;

/* NULL when it can't be opened, which was said. */
source *source_open(const char *url, bool follow, program_reading *reading);
void source_close(source *s);

typedef enum source_state {
    SOURCE_MORE,  /* there is something from at on to be scanned */
    SOURCE_QUIET, /* nothing now */
    SOURCE_NEW,   /* the log is another one now: the text has to be numbered, and is scanned from its start */
    SOURCE_ENDED, /* nothing will come */
} source_state;

/* Looks what there is; never waits for a file or a collector. */
source_state source_look(source *s);

/* What of at to its end to scan next. */
scan_job source_job(const source *s);

/*
 * Has the decoder read what of a part is not plain: x takes its records apart, and they are added to the part's rows.
 */
void source_decode_odd(source *s, scan_part *p, extractor *x);

/* All of the text is to be scanned again. */
void source_rewind(source *s);

/*
 * What seemed text holds blocks too: from now on its records come from a reader. False when it can't be opened, which
 * was said.
 */
bool source_read_as_records(source *s);

/* The last line, which has no newline, once the source has ended: its records are added to rows. */
void source_finish(source *s, batch *rows, extractor *x);

#endif
