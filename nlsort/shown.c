#include "config.h"

#include "shown.h"

#include "program/program.h"
#include "record/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool shown_on_terminal(const char *output)
{
    return (output == NULL || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO);
}

nl_status shown_put(nl_writer *writer, bool on_terminal, const char *text, size_t size)
{
    if (!on_terminal || !nl_terminal_controls_anywhere(text, size))
        return nl_writer_put_text(writer, NL_LEVEL_NONE, text, size);
    char *copy = malloc(size);
    if (copy == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    memcpy(copy, text, size);
    program_replace_controls(copy, size);
    nl_status status = nl_writer_put_text(writer, NL_LEVEL_NONE, copy, size);
    free(copy);
    return status;
}
