#include "config.h"

#include "calls_read.h"

#include "base/error.h"
#include "trace_dat.h"

#include <string.h>
#include <sys/stat.h>

static void take_call_record(void *user, const nl_record *record)
{
    calls_take(user, record);
}

/* Reads the whole of a trace.dat file, decompressed. Returns false for any other file, after its first bytes. */
static bool load_trace_dat(nl_buffer *bytes, const char *path)
{
    nl_source *source = program_source_open_stored(path);
    const char *data;
    size_t size;
    nl_status status = NL_FAILED;
    while (source != NULL && (status = program_source_read(source, &data, &size)) == NL_OK) {
        nl_buffer_append(bytes, data, size);
        if (bytes->size >= TRACE_DAT_MAGIC_SIZE && !trace_dat_detect(bytes->data, bytes->size))
            break;
    }
    nl_source_close(source);
    return status == NL_END && trace_dat_detect(bytes->data, bytes->size);
}

/* Only a regular file can be a trace.dat: the content is inspected before the source is read. */
static bool read_call_source(calls *c, log_input *input, const char *name)
{
    struct stat status;
    const char *path = strcmp(name, "-") == 0 ? "/dev/stdin" : name;
    nl_buffer bytes = {0};
    bool ok;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && load_trace_dat(&bytes, path)) {
        ok = trace_dat_read(c, input->where.filter, bytes.data, bytes.size);
        if (!ok)
            program_error("%s: %s", name, nl_error_message());
    } else {
        ok = log_input_read(input, name, take_call_record, c);
    }
    nl_buffer_free(&bytes);
    return ok;
}

int calls_read(calls *c, log_input *input, char **names, size_t count)
{
    int status = PROGRAM_DONE;
    input->reading.undated = true; /* only differences of times matter */
    for (size_t i = 0; i < (count > 0 ? count : 1); i++)
        if (!read_call_source(c, input, count > 0 ? names[i] : "-"))
            status = PROGRAM_PROBLEM;
    calls_finish(c);
    if (log_input_finish(input) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    if (c->total == 0) {
        program_error("no calls of functions found; nlkernel record --functions records them");
        status = PROGRAM_PROBLEM;
    }
    return status;
}
