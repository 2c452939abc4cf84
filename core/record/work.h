/*
 * The cost of reading in units of work of about a nanosecond. Units are counted, not measured, so that the same bytes
 * always have the same cost.
 */
#ifndef NETLOGGER_RECORD_WORK_H
#define NETLOGGER_RECORD_WORK_H

enum {
    NL_WORK_BYTE = 2,         /* a received byte */
    NL_WORK_LINE = 150,       /* a line of text, besides its bytes */
    NL_WORK_RECORD = 150,     /* a decoded record of a block */
    NL_WORK_CHECK = 25,       /* a record of a block that is passed on whole */
    NL_WORK_RAW = 2,          /* a decompressed byte */
    NL_WORK_EXPANDED = 1,     /* a byte of a decoded block's expanded size */
    NL_WORK_ENTRY = 20,       /* a source, shape or field of a block's tables */
    NL_WORK_MALFORMED = 5000, /* a malformed piece, and its report */
    NL_WORK_QUESTION = 5000,  /* a time question, and its reply */
};

#endif
