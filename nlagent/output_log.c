#include "config.h"

#include "output.h"

#include "program/own_log.h"
#include "program/program.h"

void output_open(output *out, const char *destination)
{
    out->log = program_open_log("nlsensor", destination, false);
    if (out->log == NULL)
        program_fail(PROGRAM_PROBLEM, "%s",
                     *nl_error_message() != '\0' ? nl_error_message() : "logging is switched off");
}

static bool check(bool good)
{
    if (!good)
        program_print_error();
    return good;
}

bool output_put(output *out, nl_record *record)
{
    return check(nl_write_record(out->log, record) >= NL_OK);
}

bool output_flush(output *out)
{
    return check(nl_flush(out->log) == NL_OK);
}

bool output_close(output *out)
{
    bool good = nl_close(out->log) == NL_OK;
    if (out->good)
        check(good);
    return good && out->good;
}
