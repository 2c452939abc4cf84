#include "config.h"

#include "calls_read.h"

#include "base/error.h"
#include "program/program.h"
#include "trace_dat.h"

#include <stdlib.h>
#include <string.h>

/* What tells a source's format comes first: so much of it is looked at. */
enum { HEAD_SIZE = 64 << 10 };

/* ---- one source ---- */

typedef struct input {
    calls *calls;
    program_reading *reading;
    const char *name;
    nl_source *source;
    nl_buffer bytes; /* read and not taken yet */
    bool ended;
} input;

/* Adds what comes next. False after having said why not; at the end ended is set. */
static bool read_more(input *in)
{
    const char *data;
    size_t size;
    nl_status status = program_source_read(in->source, &data, &size);
    in->ended = status == NL_END;
    if (status == NL_OK)
        nl_buffer_append(&in->bytes, data, size);
    else if (status == NL_AGAIN)
        program_pause();
    else if (status != NL_END)
        program_error("%s", nl_error_message());
    return status == NL_OK || status == NL_END || status == NL_AGAIN;
}

static void take_decoded(input *in, nl_decoder *decoder)
{
    const nl_record *record;
    while (nl_decoder_next(decoder, &record) == NL_OK)
        calls_take(in->calls, record);
}

static bool read_log(input *in)
{
    nl_decoder *decoder = program_reading_decoder(in->reading, in->name);
    bool good = true;
    do {
        nl_decoder_feed(decoder, in->bytes.data, in->bytes.size);
        in->bytes.size = 0;
        take_decoded(in, decoder);
        good = in->ended || read_more(in);
    } while (good && (!in->ended || in->bytes.size > 0));
    nl_decoder_finish(decoder);
    take_decoded(in, decoder);
    program_reading_close_decoder(in->reading, decoder);
    return good;
}

static bool read_source(input *in)
{
    bool good = true;
    while (good && !in->ended && in->bytes.size < HEAD_SIZE)
        good = read_more(in);
    if (!good)
        return false;
    if (trace_dat_detect(in->bytes.data, in->bytes.size)) {
        while (good && !in->ended)
            good = read_more(in);
        if (good && !trace_dat_read(in->calls, in->bytes.data, in->bytes.size)) {
            program_error("%s: %s", in->name, nl_error_message());
            good = false;
        }
        return good;
    }
    return read_log(in);
}

static bool read_folder(calls *c, program_reading *reading, const char *name)
{
    program_log *log = program_log_open(reading, name, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    while ((status = program_log_next(log, NULL, &record)) == NL_OK)
        calls_take(c, record);
    program_log_close(log);
    return status != NL_FAILED;
}

static bool read_one(calls *c, program_reading *reading, const char *name)
{
    if (program_is_archive(name))
        return read_folder(c, reading, name);
    reading->undated = true; /* only the differences of times matter */
    input in = {
        .calls = c, .reading = reading, .name = name, .source = program_source_open(reading, name, false, false)};
    if (in.source == NULL) {
        program_error("%s", nl_error_message());
        return false;
    }
    bool good = read_source(&in);
    nl_source_close(in.source);
    nl_buffer_free(&in.bytes);
    return good;
}

int calls_read(calls *c, program_reading *reading, char **names, size_t count)
{
    int status = PROGRAM_DONE;
    for (size_t i = 0; i < (count > 0 ? count : 1); i++)
        if (!read_one(c, reading, count > 0 ? names[i] : "-"))
            status = PROGRAM_PROBLEM;
    calls_finish(c);
    if (program_reading_finish(reading) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    if (c->total == 0) {
        program_error("there are no calls of functions in it: nlkernel record --functions makes them");
        status = PROGRAM_PROBLEM;
    }
    return status;
}
