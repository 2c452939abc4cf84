/* Reading a log: the whole log, the records from a given time, and selected records. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>

/* Writes a log to read: 100 records, one second apart. */
static bool write_log(const char *url)
{
    nl_log *log = nl_open("reading", url);
    nl_record *record = nl_record_new();
    bool good = log != NULL;
    for (int i = 0; good && i < 100; i++) {
        nl_record_clear(record);
        nl_record_set_time(record, (INT64_C(1769860800) + i) * NL_NS_PER_SECOND);
        nl_record_set_event(record, "WriteData", 9);
        nl_record_add_int(record, "SEND.SZ", i);
        good = nl_write_record(log, record) == NL_OK;
    }
    nl_record_free(record);
    return nl_close(log) == NL_OK && good;
}

static void reading_report(void *user, const nl_malformed *what)
{
    fprintf(user, "%s:%" PRIu64 ": %s\n", what->source, what->line, what->reason);
}

int main(void)
{
    if (!write_log("file:reading.nlb?clock=no"))
        return 1;
    nl_filter *filter = nl_filter_parse("SEND.SZ >= 90 and NL.EVNT == WriteData");
    nl_reader_options options = {.on_malformed = reading_report, .user = stderr};
    nl_reader *reader = nl_reader_open("reading.nlb", &options);
    if (filter == NULL || reader == NULL) {
        fprintf(stderr, "reading: %s\n", nl_error_message());
        return 1;
    }

    /* Skips blocks whose headers show that all their records are earlier than this time. */
    nl_status status = nl_reader_seek(reader, (INT64_C(1769860800) + 50) * NL_NS_PER_SECOND);
    const nl_record *record;
    int meant = 0;
    while (status == NL_OK && (status = nl_reader_next(reader, &record)) == NL_OK)
        meant += nl_filter_matches(filter, record);
    const nl_reader_stats *stats = nl_reader_get_stats(reader);
    printf("%d of %" PRIu64 " records match; %" PRIu64 " pieces are malformed\n", meant, stats->records,
           stats->malformed);
    nl_reader_close(reader);
    nl_filter_free(filter);
    return status == NL_END && meant == 10 ? 0 : 1;
}
