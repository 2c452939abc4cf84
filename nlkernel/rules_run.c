#include "config.h"

#include "rules_run.h"

#include "base/error.h"
#include "kallsyms.h"
#include "rights.h"
#include "synthesis/symbols.h"
#include "record/format.h"

#include <string.h>

bool rules_run_open(rules_run *run, const char *name, const char *const *parameters, const char *output)
{
    *run = (rules_run){0};
    if (!rules_file_read(&run->file, name, parameters))
        return false;
    run->rules = nl_synthesis_read(run->file.path, parameters);
    bool good = run->rules != NULL && summaries_read(&run->summaries, &run->file);
    if (good && output != NULL) {
        nl_format format = nl_format_of_name(output);
        nl_writer_options options = {.truncate = true, .buffer_size = 256 << 10};
        options.format = format != NL_FORMAT_UNKNOWN ? format : NL_FORMAT_ULM;
        run->output = nl_writer_open(output, &options);
        good = run->output != NULL;
    }
    if (!good)
        rules_run_close(run);
    return good;
}

static nl_string find_symbol(void *user, uint64_t address)
{
    return kallsyms_find(user, address);
}

static kallsyms *read_symbols(void)
{
    rights_raise();
    kallsyms *symbols = kallsyms_read();
    rights_lower();
    return symbols;
}

void rules_run_is_here(rules_run *run)
{
    if (nl_synthesis_wants_symbols(run->rules))
        run->symbols = read_symbols();
    if (run->symbols != NULL)
        nl_synthesis_set_symbols(run->rules, find_symbol, run->symbols);
}

static const nl_record *with_tag(rules_run *run, const nl_record *record)
{
    if (run->tag == NULL)
        return record;
    if (run->tagged == NULL)
        run->tagged = nl_record_new();
    nl_record_copy(run->tagged, record);
    nl_record_add_string(run->tagged, run->tag, run->tag_value, strlen(run->tag_value));
    return run->tagged;
}

static void take_made(rules_run *run)
{
    const nl_record *made;
    while ((made = nl_synthesis_next(run->rules)) != NULL) {
        made = with_tag(run, made);
        summaries_take(&run->summaries, made);
        if (run->output != NULL && !run->failed && nl_writer_put(run->output, made) != NL_OK)
            run->failed = true;
    }
}

void rules_run_take(rules_run *run, const nl_record *record)
{
    nl_synthesis_put(run->rules, record);
    summaries_take(&run->summaries, with_tag(run, record));
}

int rules_run_read(rules_run *run, program_reading *reading, const char *name)
{
    program_log *log = program_log_open(reading, name, false, false);
    if (log == NULL)
        return PROGRAM_PROBLEM;
    const nl_record *record;
    nl_status status;
    uint64_t number = 0, done, total;
    while ((status = program_log_next(log, NULL, &record)) == NL_OK) {
        rules_run_take(run, record);
        if (++number % 10000 == 0) {
            take_made(run);
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, number);
        }
    }
    program_progress_end();
    program_log_close(log);
    return status == NL_FAILED ? PROGRAM_PROBLEM : PROGRAM_DONE;
}

void rules_run_between(rules_run *run)
{
    nl_synthesis_finish(run->rules);
    take_made(run);
}

bool rules_run_finish(rules_run *run)
{
    rules_run_between(run);
    summaries_compute(&run->summaries);
    if (run->output != NULL) {
        run->failed = nl_writer_close(run->output) != NL_OK || run->failed;
        run->output = NULL;
    }
    return !run->failed;
}

void rules_run_close(rules_run *run)
{
    if (run->output != NULL)
        nl_writer_discard(run->output);
    nl_record_free(run->tagged);
    nl_synthesis_free(run->rules);
    kallsyms_free(run->symbols);
    summaries_free(&run->summaries);
    rules_file_free(&run->file);
    *run = (rules_run){0};
}
