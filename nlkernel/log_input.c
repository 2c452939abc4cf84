#include "config.h"

#include "log_input.h"

#include <string.h>

enum { PROGRESS_RECORDS = 10000 };

/*
 * Returns whether the options select a record. --where never excludes the recorder's own records (NetLogger.*), because
 * they contain the losses and the length of the recording.
 */
static bool log_input_selects(const log_input *input, const nl_record *record)
{
    static const char own[] = "NetLogger.";
    const program_where *w = &input->where;
    if (w->ranged && (record->time_ns < w->since_ns || record->time_ns >= w->until_ns))
        return false;
    bool is_own = record->event.size >= strlen(own) && memcmp(record->event.data, own, strlen(own)) == 0;
    return is_own || nl_filter_matches(w->filter, record);
}

bool log_input_read(log_input *input, const char *name, void (*take)(void *user, const nl_record *record), void *user)
{
    input->reading.ranged = input->where.ranged;
    input->reading.from_ns = input->where.since_ns;
    input->reading.to_ns = input->where.until_ns;
    program_log *log = program_log_open(&input->reading, name, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    uint64_t number = 0, done, total;
    while ((status = program_log_next(log, NULL, &record)) == NL_OK) {
        if (log_input_selects(input, record))
            take(user, record);
        if (++number % PROGRESS_RECORDS == 0) {
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, number);
        }
    }
    program_progress_end();
    program_log_close(log);
    return status != NL_FAILED;
}

int log_input_finish(log_input *input)
{
    nl_filter_free(input->where.filter);
    return program_reading_finish(&input->reading);
}
