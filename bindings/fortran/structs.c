/*
 * Functions for netlogger.f90 whose arguments are C structs, whose layout Fortran cannot know, or that are inline in C.
 */
#include <netlogger.h>

nl_reader *nl_fortran_reader_open(const char *url, bool follow);
void nl_fortran_record_add_string(nl_record *record, const char *name, const char *value, size_t size);
void nl_fortran_record_add_int(nl_record *record, const char *name, int64_t value);
void nl_fortran_record_add_double(nl_record *record, const char *name, double value);
void nl_fortran_record_add_bool(nl_record *record, const char *name, bool value);

nl_reader *nl_fortran_reader_open(const char *url, bool follow)
{
    nl_reader_options options = {.follow = follow};
    return nl_reader_open(url, &options);
}

void nl_fortran_record_add_string(nl_record *record, const char *name, const char *value, size_t size)
{
    nl_record_add_string(record, name, value, size);
}

void nl_fortran_record_add_int(nl_record *record, const char *name, int64_t value)
{
    nl_record_add_int(record, name, value);
}

void nl_fortran_record_add_double(nl_record *record, const char *name, double value)
{
    nl_record_add_double(record, name, value);
}

void nl_fortran_record_add_bool(nl_record *record, const char *name, bool value)
{
    nl_record_add_bool(record, name, value);
}
