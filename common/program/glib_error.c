#include "config.h"

#include "program/glib_error.h"

#include <string.h>

bool glib_error_take(GError *error)
{
    bool missing = g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    /* GLib's message is "Failed to open file “NAME”: REASON". Keep only REASON, because the caller adds the name. */
    const char *reason = error->domain == G_FILE_ERROR ? strrchr(error->message, ':') : NULL;
    nl_error_set(missing ? NL_ERROR_NOT_FOUND : NL_ERROR_SYSTEM, "%s", reason != NULL ? reason + 2 : error->message);
    g_error_free(error);
    return false;
}
