#include "config.h"

#include "output.h"

#include "program/program.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 256 << 10 };

struct output {
    nl_writer *writer;
    bool blocked;
    bool empty;
};

output *output_open(const char *path)
{
    nl_writer *writer = nl_writer_open(path, &(nl_writer_options){.buffer_size = BUFFER_SIZE});
    if (writer == NULL)
        return NULL;
    output *out = calloc(1, sizeof *out);
    if (out == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    out->writer = writer;
    out->empty = true;
    return out;
}

/* Whether the line as it came may stand in a log that others read: nothing before DATE=, no control characters. */
static bool is_plain(nl_string line)
{
    static const char begins[] = "DATE=";
    if (line.size < sizeof begins || memcmp(line.data, begins, sizeof begins - 1) != 0)
        return false;
    unsigned char least = 255;
    for (size_t i = 0; i < line.size; i++) {
        unsigned char byte = (unsigned char)line.data[i];
        least = byte < least ? byte : least;
    }
    return least >= ' ';
}

bool output_takes_raw(const nl_record *record)
{
    return record->raw_format == NL_FORMAT_ULM && record->raw.data != NULL && is_plain(record->raw);
}

void output_put(output *out, const nl_record *record)
{
    nl_status status;
    if (record->raw_format == NL_FORMAT_ULM && !is_plain(record->raw)) {
        nl_record clean = *record;
        clean.raw = (nl_string){0};
        status = nl_writer_put(out->writer, &clean);
    } else {
        status = nl_writer_put(out->writer, record);
    }
    out->empty = false;
    out->blocked = status != NL_OK;
}

nl_status output_flush(output *out)
{
    nl_status status = nl_writer_flush(out->writer);
    out->blocked = status != NL_OK;
    out->empty = status == NL_OK;
    return status;
}

bool output_is_blocked(const output *out)
{
    return out->blocked;
}

bool output_is_empty(const output *out)
{
    return out->empty;
}

nl_status output_reopen(output *out)
{
    return nl_writer_reopen(out->writer);
}

nl_status output_close(output *out)
{
    nl_status status = nl_writer_close(out->writer);
    free(out);
    return status;
}
