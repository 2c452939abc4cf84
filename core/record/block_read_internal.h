/* The tables of an open block, for the files that read blocks (block_read.h). */
#ifndef NETLOGGER_RECORD_BLOCK_READ_INTERNAL_H
#define NETLOGGER_RECORD_BLOCK_READ_INTERNAL_H

#include "record/block_read.h"

typedef struct nl_block_source_view {
    nl_string host;
    nl_string prog;
} nl_block_source_view;

typedef struct nl_block_shape_view {
    nl_block_source_view source;
    nl_level level;
    nl_string level_text;
    nl_string event;
    size_t first_field; /* index in nl_block_reader.fields */
    size_t field_count;
    size_t expanded; /* bytes; expanded size of each record of the shape without its values */
} nl_block_shape_view;

#endif
