#include "config.h"

#include "program/glib_error.h"

bool glib_error_take(GError *error)
{
    bool missing = g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    nl_error_set(missing ? NL_ERROR_NOT_FOUND : NL_ERROR_SYSTEM, "%s", error->message);
    g_error_free(error);
    return false;
}
