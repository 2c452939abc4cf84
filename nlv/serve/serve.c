#include "config.h"

#include "serve/serve.h"

#include "serve/server.h"

enum { WAIT_US = 50000 };

/* Waits for the first record, unless is_live is true. Returns false if the logs have no records, or after a signal. */
static bool wait_for_records(model *m, bool is_live)
{
    while (!program_was_stopped()) {
        const bool has_read = model_has_read(m);
        model_lock(m);
        const size_t count = model_count(m);
        model_unlock(m);
        if (count > 0 || is_live)
            return true;
        if (has_read)
            return false;
        g_usleep(WAIT_US / 10);
    }
    return false;
}

/* Prints the notices of the model, and passes them to the page if `v` is not NULL. */
static void take_notices(model *m, views *v)
{
    for (char *text; (text = model_take_notice(m)) != NULL;) {
        program_error("%s", text);
        if (v != NULL)
            views_tell(v, text);
        else
            g_free(text);
    }
}

/* Passes notices on until a signal arrives. */
static void wait_for_signal(model *m, views *v)
{
    while (!program_was_stopped()) {
        take_notices(m, v);
        g_usleep(WAIT_US);
    }
}

int serve_run(model *m, program_reading *reading, const char *address, const views_look *look, bool is_live)
{
    program_catch_signals();
    model_start(m);
    if (!wait_for_records(m, is_live)) {
        if (reading->failed) /* a notice states the reason, and program_has_records prints nothing */
            take_notices(m, NULL);
        if (!program_was_stopped())
            program_has_records(reading, 0, "");
        model_free(m);
        return PROGRAM_PROBLEM;
    }
    views *v = views_new(m, look);
    jaeger *j = jaeger_new(m);
    server *s = server_start(address, v, j);
    if (s != NULL) {
        printf("%s\n", server_url(s));
        fflush(stdout);
        wait_for_signal(m, v);
        server_stop(s);
    } else {
        program_print_error();
    }
    views_free(v);
    jaeger_free(j);
    model_free(m);
    return s != NULL ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
