#include "config.h"

#include "rules_run.h"

#include "kallsyms.h"
#include "base/text.h"
#include "record/format.h"
#include "rights.h"

#include <string.h>

enum { DERIVE_RECORDS = 10000 };

bool rules_run_open(rules_run *run, const char *name, const rules_parameters *parameters, const char *output)
{
    *run = (rules_run){0};
    if (!rules_file_read(&run->file, name, parameters))
        return false;
    run->synthesis = nl_synthesis_new(&run->file.sections);
    bool ok = run->synthesis != NULL && summaries_read(&run->summaries, &run->file);
    if (ok && output != NULL) {
        nl_format format = nl_format_of_name(output);
        nl_writer_options options = {.truncate = true, .buffer_size = 256 << 10};
        options.format = format != NL_FORMAT_UNKNOWN ? format : NL_FORMAT_ULM;
        run->output = nl_writer_open(output, &options);
        ok = run->output != NULL;
    }
    if (!ok)
        rules_run_close(run);
    return ok;
}

static nl_string find_symbol(void *user, uint64_t address)
{
    return kallsyms_find(user, address);
}

void rules_run_read_symbols(rules_run *run)
{
    if (!nl_synthesis_wants_symbols(run->synthesis))
        return;
    rights_raise();
    run->symbols = kallsyms_read();
    rights_lower();
    if (run->symbols != NULL)
        nl_synthesis_set_symbols(run->synthesis, find_symbol, run->symbols);
}

static const nl_record *add_tag(rules_run *run, const nl_record *record)
{
    if (run->tag == NULL)
        return record;
    if (run->tagged == NULL)
        run->tagged = nl_record_new();
    nl_record_copy(run->tagged, record);
    nl_record_add_text(run->tagged, run->tag, run->tag_value);
    return run->tagged;
}

static void take_derived(rules_run *run)
{
    const nl_record *derived;
    while ((derived = nl_synthesis_next(run->synthesis)) != NULL) {
        derived = add_tag(run, derived);
        summaries_take(&run->summaries, derived);
        if (run->output != NULL && !run->failed && nl_writer_put(run->output, derived) != NL_OK)
            run->failed = true;
    }
}

void rules_run_take(void *user, const nl_record *record)
{
    rules_run *run = user;
    nl_synthesis_put(run->synthesis, record);
    summaries_take(&run->summaries, add_tag(run, record));
    if (++run->taken % DERIVE_RECORDS == 0)
        take_derived(run);
}

void rules_run_end_recording(rules_run *run)
{
    nl_synthesis_finish(run->synthesis);
    take_derived(run);
}

bool rules_run_finish(rules_run *run)
{
    rules_run_end_recording(run);
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
    nl_synthesis_free(run->synthesis);
    kallsyms_free(run->symbols);
    summaries_free(&run->summaries);
    rules_file_free(&run->file);
    *run = (rules_run){0};
}
