/* nlv --serve: reads the logs as the window does, and serves their views to browsers. Needs no display. */
#ifndef NLV_SERVE_SERVE_H
#define NLV_SERVE_SERVE_H

#include "serve/views.h"

/*
 * Serves a model at an address (server.h) until SIGINT or SIGTERM arrives, and then frees the model. The caller must
 * have added the sources with `follow`. If `is_live` is false and the logs have no records, prints a message and
 * returns. Returns the exit status.
 */
int serve_run(model *m, program_reading *reading, const char *address, const views_look *look, bool is_live);

#endif
