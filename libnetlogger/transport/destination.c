#include "config.h"

#include "transport/destination.h"

#include "base/error.h"

nl_destination *nl_destination_open(const nl_url *url, const nl_destination_options *options)
{
    switch (url->scheme) {
    case NL_SCHEME_STDIO:
    case NL_SCHEME_FILE:
        return nl_file_destination_open(url, options);
    case NL_SCHEME_NETLOG:
    case NL_SCHEME_UNIX:
        return nl_socket_destination_open(url, options);
    case NL_SCHEME_SYSLOG:
        return nl_syslog_destination_open(url, options);
    case NL_SCHEME_MEMORY:
        return nl_memory_destination_open(url);
    }
    nl_error_set("open %s: records cannot be written there", url->text);
    return NULL;
}

nl_status nl_destination_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                               size_t *written)
{
    *written = 0;
    return destination->kind->write(destination, level, data, size, written);
}

int64_t nl_destination_size(nl_destination *destination)
{
    return destination->kind->size != NULL ? destination->kind->size(destination) : -1;
}

nl_status nl_destination_reopen(nl_destination *destination)
{
    return destination->kind->reopen != NULL ? destination->kind->reopen(destination) : NL_OK;
}

void nl_destination_after_fork(nl_destination *destination)
{
    if (destination->kind->after_fork != NULL)
        destination->kind->after_fork(destination);
}

nl_status nl_destination_close(nl_destination *destination, bool keep)
{
    return destination->kind->close(destination, keep);
}
