#include "config.h"

#include "output.h"

#include "program/own_log.h"
#include "program/program.h"
#include "transport/url.h"

/* Returns whether the log stores records elsewhere while its destination is unreachable. For such a log, flushing
 * succeeds, so only the log's message reports that the destination is unreachable. */
static bool has_second_destination(const char *destination)
{
    nl_url *url = nl_url_parse(destination);
    const bool has =
        url != NULL && (nl_url_option_value(url, "spool") != NULL || nl_url_option_value(url, "backup") != NULL);
    nl_url_free(url);
    return has;
}

void output_open(output *out, const char *destination)
{
    out->log = program_open_log("nlsensor", destination, has_second_destination(destination));
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
    bool good = program_close_log(out->log) == NL_OK;
    if (out->good)
        check(good);
    return good && out->good;
}
