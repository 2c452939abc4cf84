/* Reading a log: all of it, from a time on, and only some records. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>

/* Something to read, written by a writer. */
static bool write_log(const char *path)
{
    nl_writer *writer = nl_writer_open(path, &(nl_writer_options){.truncate = true});
    nl_record *record = nl_record_new();
    bool good = writer != NULL;
    for (int i = 0; good && i < 100; i++) {
        nl_record_clear(record);
        nl_record_set_time(record, (INT64_C(1769860800) + i) * NL_NS_PER_SECOND);
        nl_record_set_event(record, "WriteData", 9);
        nl_record_add_int(record, "SEND.SZ", i);
        good = nl_writer_put(writer, record) == NL_OK;
    }
    nl_record_free(record);
    return writer != NULL && nl_writer_close(writer) == NL_OK && good;
}

static void report(void *user, const nl_malformed *what)
{
    fprintf(user, "%s:%" PRIu64 ": %s\n", what->source, what->line, what->reason);
}

int main(void)
{
    if (!write_log("reading.nlb"))
        return 1;
    nl_filter *filter = nl_filter_parse("SEND.SZ >= 90 and NL.EVNT == WriteData");
    nl_reader_options options = {.decoder = {.on_malformed = report, .user = stderr}};
    nl_reader *reader = nl_reader_open("reading.nlb", &options);
    if (filter == NULL || reader == NULL) {
        fprintf(stderr, "reading: %s\n", nl_error_message());
        return 1;
    }
    printf("%s, %" PRIu64 " bytes\n", nl_filter_text(filter), nl_reader_size(reader));

    /* What lies before that time is passed over by looking at the headers of blocks. */
    nl_status status = nl_reader_seek(reader, (INT64_C(1769860800) + 50) * NL_NS_PER_SECOND);
    const nl_record *record;
    int meant = 0;
    while (status == NL_OK && (status = nl_reader_next(reader, &record)) == NL_OK)
        meant += nl_filter_matches(filter, record);
    const nl_decoder_stats *stats = nl_reader_get_stats(reader);
    printf("%d of %" PRIu64 " records, as %s, after %" PRIu64 " bytes; %" PRIu64 " malformed\n", meant, stats->records,
           nl_format_name(nl_reader_format(reader)), nl_reader_position(reader), stats->malformed);
    nl_reader_close(reader);
    nl_filter_free(filter);

    /* Where netlogd has put an index beside a file, what lies behind a time is not read, either. */
    reader = nl_reader_open("reading.nlb", NULL);
    const int64_t from_ns = INT64_C(1769860800) * NL_NS_PER_SECOND;
    int found = 0;
    if (reader == NULL || nl_reader_seek_range(reader, from_ns, from_ns + 50 * NL_NS_PER_SECOND) != NL_OK)
        return 1;
    while (nl_reader_next(reader, &record) == NL_OK)
        found += record->time_ns < from_ns + 50 * NL_NS_PER_SECOND;
    nl_reader_close(reader);
    return status == NL_END && meant == 10 && found == 50 ? 0 : 1;
}
