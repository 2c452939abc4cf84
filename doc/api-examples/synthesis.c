/* Rules that make one record of many; and a program that is told live of what it runs in. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>

static const char rules[] = "[schema]\nname=requests\n"
                            "[span Request]\nbegin=Request.Begin key REQ.ID\nend=Request.End key REQ.ID\n";

/* A request that took so many milliseconds, as two records. */
static void put_request(nl_synthesis *synthesis, int64_t id, int64_t milliseconds)
{
    nl_record *record = nl_record_new();
    for (int step = 0; step < 2; step++) {
        nl_record_clear(record);
        nl_record_set_time(record, (INT64_C(1769860800000) + step * milliseconds) * 1000000);
        nl_record_set_event(record, step == 0 ? "Request.Begin" : "Request.End", step == 0 ? 13 : 11);
        nl_record_add_int(record, "REQ.ID", id);
        nl_synthesis_put(synthesis, record);
    }
    nl_record_free(record);
}

static int count(nl_synthesis *synthesis)
{
    int made = 0;
    for (const nl_record *record; (record = nl_synthesis_next(synthesis)) != NULL; made++)
        printf("made: %.*s\n", (int)record->event.size, record->event.data);
    return made;
}

/* The same rules from a file, over what a log says; NULL in place of the log is this host's kernel. */
static bool live(const char *path)
{
    nl_environment *environment = nl_environment_open(path, "synthesis.log", NULL);
    const nl_record *record;
    int made = 0;
    nl_status status = NL_END;
    while (environment != NULL && (status = nl_environment_next(environment, 1000, &record)) != NL_END) {
        if (status == NL_FAILED)
            break;
        made += status == NL_OK;
    }
    nl_environment_close(environment);
    return environment != NULL && status == NL_END && made == 1;
}

int main(void)
{
    nl_synthesis *synthesis = nl_synthesis_parse(rules, "rules", NULL);
    if (synthesis == NULL) {
        fprintf(stderr, "synthesis: %s\n", nl_error_message());
        return 1;
    }
    put_request(synthesis, 1, 5);
    nl_synthesis_advance(synthesis, INT64_C(1769860801000) * 1000000); /* no record from before then will follow */
    int made = count(synthesis);
    put_request(synthesis, 2, 2000);
    nl_synthesis_finish(synthesis);
    made += count(synthesis);
    nl_synthesis_stats stats;
    nl_synthesis_get_stats(synthesis, &stats);
    printf("%" PRIu64 " made of %" PRIu64 ", %" PRIu64 " late\n", stats.made, stats.taken, stats.late);
    nl_synthesis_free(synthesis);

    FILE *file = fopen("requests.rules", "w"), *log = fopen("synthesis.log", "w");
    if (file == NULL || log == NULL || fputs(rules, file) < 0 ||
        fputs("DATE=20260131120000.1 NL.EVNT=Request.Begin REQ.ID=1\nDATE=20260131120000.2 NL.EVNT=Request.End "
              "REQ.ID=1\n",
              log) < 0 ||
        fclose(file) != 0 || fclose(log) != 0)
        return 1;
    synthesis = nl_synthesis_read("requests.rules", NULL); /* to see whether a file of rules is right */
    bool readable = synthesis != NULL;
    nl_synthesis_free(synthesis);
    return made == 2 && readable && live("requests.rules") ? 0 : 1;
}
