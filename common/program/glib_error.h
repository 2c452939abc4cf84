/* Converts GLib errors to this thread's error. Any thread may call this function. */
#ifndef NETLOGGER_PROGRAM_GLIB_ERROR_H
#define NETLOGGER_PROGRAM_GLIB_ERROR_H

#include "base/error.h"

#include <glib.h>

/* Converts a GLib error to this thread's error, and frees the GLib error. Returns false. */
bool glib_error_take(GError *error);

#endif
