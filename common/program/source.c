/* Sources that have no end: collectors. Reading them ends by a signal, with what came until then. */
#include "config.h"

#include "program/program.h"
#include "program/reading.h"

#include <signal.h>
#include <time.h>

enum { PAUSE_NS = 5000000 };

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

bool program_was_stopped(void)
{
    return stopped != 0;
}

void program_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool program_awaits_signal(const char *name)
{
    static bool told;
    nl_url *url = nl_url_parse(name);
    bool endless = url != NULL && (url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS ||
                                   url->scheme == NL_SCHEME_UNIX);
    nl_url_free(url);
    if (endless && !told) {
        program_catch_signals();
        program_error("%s: a collector's records have no end: SIGINT (Ctrl-C) ends the reading, and what came until "
                      "then counts",
                      name);
        told = true;
    }
    return endless;
}

void program_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

nl_source *program_source_open(const char *name)
{
    nl_url *url = nl_url_parse(name);
    nl_source *source = url != NULL ? nl_source_open(url, false, program_awaits_signal(name)) : NULL;
    nl_url_free(url);
    return source;
}

nl_status program_source_read(nl_source *source, const char **data, size_t *size)
{
    while (!stopped) {
        nl_status status = nl_source_read(source, data, size);
        if (status != NL_AGAIN)
            return status;
        program_pause();
    }
    return NL_END;
}
