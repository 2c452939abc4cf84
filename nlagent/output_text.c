#include "config.h"

#include "output.h"

#include "base/write_some.h"
#include "program/program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void output_open(output *out, const char *destination)
{
    (void)destination;
    program_host(out->host, sizeof out->host);
}

bool output_put(output *out, nl_record *record)
{
    if (record->time_ns == 0)
        nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_host(record, out->host, strlen(out->host));
    nl_record_set_prog(record, "nlsensor", strlen("nlsensor"));
    nl_record_encode(record, NL_FORMAT_ULM, &out->text);
    return true;
}

/* Writes the records of the measurement or, without records, an empty line, so that nlagentd knows that the sensor is
 * alive. On failure, reports the problem and returns false. */
bool output_flush(output *out)
{
    if (out->text.size == 0)
        nl_buffer_append(&out->text, "\n", 1);
    if (!nl_write_all(STDOUT_FILENO, out->text.data, out->text.size)) {
        program_error("write standard output: %s", strerror(errno));
        return false;
    }
    out->text.size = 0;
    return true;
}

bool output_close(output *out)
{
    nl_buffer_free(&out->text);
    return out->good;
}
