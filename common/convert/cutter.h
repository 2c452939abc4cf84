/*
 * Cuts the bytes of one input into pieces that an importer reads. A cutter finds the format, skips the header, and ends
 * each piece after a whole record. The readers of foreign formats (translate.c) and nlconv's pipeline add bytes to `in`
 * and call cutter_next. Every byte is in exactly one piece. Only one thread at a time may use a cutter.
 */
#ifndef NETLOGGER_CONVERT_CUTTER_H
#define NETLOGGER_CONVERT_CUTTER_H

#include "base/buffer.h"
#include "convert/convert.h"

typedef struct cutter {
    const importer_kind *from; /* NULL while the format is unknown */
    size_t piece_size;         /* number of bytes to collect before a piece is cut */
    nl_buffer in;              /* bytes that are not in a piece yet */
    void *head;                /* the state that from->head has created for the importers */
    size_t wanted;             /* number of bytes to collect in `in` before the next call of cutter_next */
    bool in_long_line;         /* the buffer `in` begins inside a line that is too long for a record */
} cutter;

typedef enum cut {
    CUT_NOTHING, /* more bytes are needed, or the input has ended */
    CUT_RECORDS, /* the piece has whole records; it may be empty at the end of the input */
    CUT_OTHER, /* the piece has no records; it is a header, or a line that is too long, which the cutter reports to the
                  sink */
} cut;

/*
 * Sets c->from to the format of the bytes in `in`, unless it is already set. If `now` is true, decides even if only a
 * few bytes have arrived. Returns false if more bytes are needed. If the result is true and c->from is NULL, the format
 * is unknown.
 */
bool cutter_detect(cutter *c, bool now);

/*
 * Finds the next piece, which is the first *size bytes of `in`. Returns the kind of the piece. The caller uses the
 * piece, and then calls cutter_remove. Call cutter_detect first. `all` is true if no more bytes will arrive. In this
 * case, the last piece is CUT_RECORDS.
 */
cut cutter_next(cutter *c, bool all, sink *s, size_t *size);

/* Removes the first bytes of `in`. */
void cutter_remove(cutter *c, size_t size);

/* Begins a new input. Frees everything except `from`. */
void cutter_reset(cutter *c);

/* Returns the number of newlines in `size` bytes. */
uint64_t cutter_count_lines(const char *data, size_t size);

#endif
