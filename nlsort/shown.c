#include "config.h"

#include "shown.h"

#include "base/memory.h"
#include "program/program.h"
#include "record/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool shown_on_terminal(const char *output)
{
    if (output == NULL || strcmp(output, "-") == 0)
        return isatty(STDOUT_FILENO);
    nl_url *url = nl_url_parse(output);
    struct stat what;
    bool is_device =
        url != NULL && url->scheme == NL_SCHEME_FILE && stat(url->path, &what) == 0 && S_ISCHR(what.st_mode);
    int fd = is_device ? open(url->path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    bool is_terminal = fd >= 0 && isatty(fd);
    if (fd >= 0)
        close(fd);
    nl_url_free(url);
    return is_terminal;
}

nl_status shown_put(nl_writer *writer, bool on_terminal, const char *text, size_t size)
{
    if (!on_terminal || !nl_terminal_controls_anywhere(text, size))
        return nl_writer_put_text(writer, text, size);
    char *copy = nl_memory_check(malloc(size));
    memcpy(copy, text, size);
    program_replace_controls(copy, size);
    nl_status status = nl_writer_put_text(writer, copy, size);
    free(copy);
    return status;
}
