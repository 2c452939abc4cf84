/*
 * A log that records come from: a file, which may grow, be cut short or be replaced; an archive, whose files are read
 * one after another; a pipe; a collector. It owns the files that records lie in (log_file.h). One thread, the model's
 * loader.
 */
#ifndef NLV_SOURCE_H
#define NLV_SOURCE_H

#include "model/block_cutter.h"
#include "model/feed.h"
#include "model/prints.h"
#include "model/scan.h"

typedef struct source {
    char *url;
    char *path; /* of a file; NULL of all else */
    bool follow;
    program_reading *reading;
    GPtrArray *files; /* log_file, in the order in which they are read */
    guint current;    /* the one that is read now */
    uint64_t at;      /* what is before in it was read */
    prints prints;    /* of what was read of the only file */
    char **archive;   /* paths of the files of an archive, archive_count of them, up to archive_next opened */
    size_t archive_count, archive_next;
    nl_decoder *decoder;    /* of lines of text that are not plain; */
    block_cutter **cutters; /* of each file: NULL of text */
    nl_source *stream;      /* whose bytes go into spills; NULL: it has ended, or there is none */
    feed *feed;             /* whose records go into the only spill; NULL: there is none */
    bool begins_spill;      /* the next bytes of the stream are those of another file */
    bool is_finished;       /* the current file is read, and the next one is not there yet */
    bool ended;             /* nothing will come any more */
    char *notice;           /* what has happened to it, to be told and freed; NULL: nothing */
    bool is_emptied;
    bool is_gone; /* its file has no name any more, which was told */
} source;

/* NULL when it cannot be opened, which was reported. */
source *source_open(const char *url, bool follow, program_reading *reading);
void source_close(source *s);

/* A source whose records come decoded. Takes over a reference to the feed. */
source *source_open_feed(feed *f, const char *name, program_reading *reading);

typedef enum source_state {
    SOURCE_MORE,  /* there is more to be scanned in the current file */
    SOURCE_FED,   /* the feed has records: source_take_fed */
    SOURCE_QUIET, /* nothing now */
    SOURCE_LAST,  /* the current file is complete: source_finish, then source_go_on */
    SOURCE_ENDED, /* nothing will come */
} source_state;

/* Looks for more, in the source and in new files of it; never waits for a file or a collector. */
source_state source_look(source *s);

/* The current file; NULL while there is none. */
log_file *source_file(const source *s);

/*
 * Appends the blocks that come next in the current file, when it is one of blocks and all that are known were scanned.
 * They are to be added to the file, by log_file_add_blocks.
 */
void source_cut(source *s, GArray *found);

/* What of the current file to scan next. The job's blocks are the file's. */
scan_job source_job(const source *s);

/* Reads what of a part is not plain: its records are added to the part's rows. */
void source_decode_odd(source *s, scan_part *p, extractor *x);

/* Adds records of the feed to rows, and their bytes to the spill. */
void source_take_fed(source *s, batch *rows, extractor *x);

/* Adds the records of a last line without newline to rows. */
void source_finish(source *s, batch *rows, extractor *x);

/* Goes on to the next file, if there is one. */
void source_go_on(source *s);

/* All is to be read again, from what is there. */
void source_rewind(source *s);

/* The index has what is before an offset of the only file. */
void source_skip_to(source *s, uint64_t at);

/* What is known of the blocks of the only file is wrong. */
void source_forget_blocks(source *s);

/* What seemed text holds blocks too: it is to be read again as such. */
void source_expect_blocks(source *s);

/* Bytes of all files so far, and how many were read. */
uint64_t source_size(const source *s);
uint64_t source_done(const source *s);

/* Whether all there is was read, but for a last line that is not complete. */
bool source_has_read_all(const source *s);

#endif
