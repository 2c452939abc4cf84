/*
 * What reading costs, in units of work: about a nanosecond each. They are counted, not measured, so that the same bytes
 * always cost the same.
 */
#ifndef NETLOGGER_RECORD_WORK_H
#define NETLOGGER_RECORD_WORK_H

enum {
    NL_WORK_BYTE = 2,         /* a byte as it arrived */
    NL_WORK_LINE = 150,       /* a line of text, besides its bytes */
    NL_WORK_RECORD = 150,     /* a record of a block that is decoded */
    NL_WORK_CHECK = 25,       /* a record of a block that is taken whole */
    NL_WORK_RAW = 2,          /* a byte that was decompressed */
    NL_WORK_EXPANDED = 1,     /* a byte of a decoded block's expanded size */
    NL_WORK_ENTRY = 20,       /* a source, shape or field of a block's tables */
    NL_WORK_MALFORMED = 5000, /* a piece that cannot be read, and its report */
    NL_WORK_QUESTION = 5000,  /* a question for the time, and its answer */
};

#endif
