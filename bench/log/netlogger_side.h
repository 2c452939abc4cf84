/* Opens and closes NetLogger's logs. SIDE_OPTIONS contains URL options. With SIDE_OFF, the log writes nothing. */
#ifndef BENCH_LOG_NETLOGGER_SIDE_H
#define BENCH_LOG_NETLOGGER_SIDE_H

static nl_log *side_log;

void side_open(const char *path)
{
    char url[4096];
    snprintf(url, sizeof url, "file://%s?" SIDE_OPTIONS, path);
    side_log = nl_open("bench", url);
    if (side_log == NULL) {
        fprintf(stderr, "%s: %s\n", url, nl_error_message());
        exit(1);
    }
#ifdef SIDE_OFF
    nl_set_level(side_log, NL_ERROR);
#endif
}

uint64_t side_close(void)
{
    if (nl_close(side_log) != NL_OK) {
        fprintf(stderr, "%s\n", nl_error_message());
        exit(1);
    }
    return 0;
}

#endif
