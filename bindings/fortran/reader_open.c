/*
 * Opens a reader for netlogger.f90, because its options are a C struct whose layout Fortran cannot know.
 */
#include <netlogger.h>

nl_reader *nl_fortran_reader_open(const char *url, bool follow);

nl_reader *nl_fortran_reader_open(const char *url, bool follow)
{
    nl_reader_options options = {.follow = follow};
    return nl_reader_open(url, &options);
}
