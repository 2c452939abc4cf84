/*
 * Reads a source, which is one of the following:
 * - a file, which may grow, be truncated or be replaced
 * - an archive, whose files are read one after another
 * - a pipe
 * - a collector
 * - a feed of decoded records
 * A source owns its files of records (log_file.h). Only the loader's thread uses a source.
 */
#ifndef NLV_SOURCE_H
#define NLV_SOURCE_H

#include "model/block_cutter.h"
#include "model/feed.h"
#include "model/prints.h"
#include "model/reconnection.h"
#include "model/scan.h"

typedef struct source {
    char *url;
    char *name; /* unique name; NULL until the loader takes over the source */
    char *path; /* path of a file; NULL for other sources */
    bool follow;
    program_reading *reading;
    GPtrArray *files; /* log_file, in the order of reading */
    guint current;    /* index of the current file */
    uint64_t at;      /* number of bytes of the current file that nlv has read */
    prints prints;    /* fingerprints of the first `at` bytes, if the source is a single file */
    char **archive;   /* paths of an archive's files; the files before archive_next are open */
    size_t archive_count, archive_next;
    nl_decoder *decoder;    /* decodes the lines that are not plain (line_scanner.h) */
    block_cutter **cutters; /* an element for each file; NULL for text */
    nl_source *stream;      /* its bytes go to spills; NULL: the stream has ended, or no stream */
    reconnection *again;    /* opens the stream of a collector again after it has ended; NULL: no stream to open */
    feed *feed;             /* the source writes its records to the only spill; NULL: no feed */
    bool begins_spill;      /* the next bytes of the stream belong to a new file */
    bool is_finished;       /* nlv has read the current file completely, and there is no next file yet */
    bool ended;             /* no more records will arrive */
    char *notice;           /* a sentence about an event of the log, which the loader frees; NULL: no notice */
    bool is_emptied;
    bool is_gone; /* the file no longer has a name, and the source has reported this */
} source;

/* Opens a log. On failure, prints the reason and returns NULL. */
source *source_open(const char *url, bool follow, program_reading *reading);
void source_close(source *s);

/*
 * Opens a source of decoded records. Takes ownership of the caller's reference to the feed. On failure, sets the
 * error and returns NULL.
 */
source *source_open_feed(feed *f, const char *name, program_reading *reading);

typedef enum source_state {
    SOURCE_MORE,  /* the current file has more to scan */
    SOURCE_FED,   /* the feed has records: call source_take_fed */
    SOURCE_QUIET, /* there is nothing to read now */
    SOURCE_LAST,  /* the current file is complete; call source_finish and source_go_on */
    SOURCE_ENDED, /* no more records will arrive */
} source_state;

/* Looks for new bytes or records in the source. Never waits for a file or a collector. */
source_state source_look(source *s);

/* Returns the current file, or NULL before the first file. */
log_file *source_file(const source *s);

/* If nlv has scanned all known blocks of the current file, appends the next blocks (log_block) to `found`. The caller
 * adds these blocks to the file with log_file_add_blocks. */
void source_cut(source *s, GArray *found);

/* Returns the part of the current file to scan next. The job's blocks belong to the file. */
scan_job source_job(const source *s);

/* Decodes the lines that are not plain and the damaged blocks of a part, and adds their records to its rows. */
void source_decode_odd(source *s, scan_part *p, extractor *x);

/* Adds records of the feed to rows, and writes their bytes to the spill. Closes the feed if writing fails. */
void source_take_fed(source *s, batch *rows, extractor *x);

/* Adds the records of the last line to rows, if the line does not end with a newline. */
void source_finish(source *s, batch *rows, extractor *x);

/* Continues with the next file, if the source has a next file. */
void source_go_on(source *s);

/* Makes the source start again at the first byte that is still available. */
void source_rewind(source *s);

/* Skips the bytes of a single file that its index covers, up to an offset. */
void source_skip_to(source *s, uint64_t at);

/* Drops the table of blocks of a single file. */
void source_forget_blocks(source *s);

/* Starts to read the current file again as blocks. Call the function if the file seemed to be text but contains
 * blocks. */
void source_expect_blocks(source *s);

/* Return the total size of the known files, and the number of bytes that nlv has read. */
uint64_t source_size(const source *s);
uint64_t source_done(const source *s);

/* Returns whether nlv has read all bytes except an incomplete last line. */
bool source_has_read_all(const source *s);

#endif
