/* What netlogger.f90 cannot say by itself: the options of a reader are a C struct whose layout is not Fortran's to
 * know. */
#include <netlogger.h>

nl_reader *nl_fortran_reader_open(const char *url, bool follow);

nl_reader *nl_fortran_reader_open(const char *url, bool follow)
{
    nl_reader_options options = {.follow = follow};
    return nl_reader_open(url, &options);
}
