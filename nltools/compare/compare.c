#include "config.h"

#include "compare/compare.h"

#include "compare/comparison.h"
#include "diag/visits.h"
#include "program/program.h"

#include <string.h>

enum { STATUS_SLOWER = 3, STATUS_CANNOT_TELL = 4 };

static bool compare_set_with(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    compare_options *o = settings;
    guint count = o->after != NULL ? g_strv_length(o->after) : 0;
    o->after = g_renew(char *, o->after, count + 2);
    o->after[count] = g_strdup(value);
    o->after[count + 1] = NULL;
    return true;
}

const nl_option compare_option_rows[] = {
    {.name = "compare",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(compare_options, compare),
     .help = "Report what changed between the SOURCEs and the SOURCEs of --with, or between two SOURCEs. The exit "
             "status is 3 if requests are slower or more of them fail, 4 if the comparison cannot tell, and otherwise "
             "0"},
    {.name = "with",
     .value = "SOURCE...",
     .set = compare_set_with,
     .repeatable = true,
     .takes_operands = true,
     .help = "SOURCEs recorded after the change, for --compare"},
    {0},
};

void compare_options_check(const compare_options *o, int operand_count)
{
    if (o->compare && (o->after == NULL ? operand_count != 2 : operand_count < 1))
        options_fail("--compare requires SOURCEs recorded before and after the change");
    if (!o->compare && o->after != NULL)
        options_fail("--with requires --compare");
}

void compare_options_finish(compare_options *o)
{
    g_strfreev(o->after);
}

/* The state of reading the logs of a comparison. */
typedef struct comparing {
    subject_options *subject;
    program_reading settings; /* settings of reading, with zero counts */
    bool incomplete;          /* a log was malformed, incomplete or unreadable */
    profile *profile;
    char *ids; /* ID fields of the first log */
    const char *first;
} comparing;

/* Returns whether a log has the same ID fields as the first log. If the fields differ, prints a message. */
static bool check_ids(comparing *c, const visits *v, const char *name)
{
    GString *ids = g_string_new("");
    for (guint i = 0; i < v->ids->len; i++)
        g_string_append_printf(ids, "%s%s", i > 0 ? ", " : "", (char *)g_ptr_array_index(v->ids, i));
    bool same = c->ids == NULL || strcmp(c->ids, ids->str) == 0;
    if (!same)
        program_error("%s identifies requests by %s, but %s by %s; name the field with --id", name, ids->str, c->first,
                      c->ids);
    if (c->ids == NULL) {
        c->ids = g_string_free(ids, FALSE);
        c->first = name;
    } else {
        g_string_free(ids, TRUE);
    }
    return same;
}

/* Reads a log. If the log cannot be compared, prints one message and returns false. */
static bool compare_read_log(comparing *c, int side, const char *name)
{
    program_reading *reading = &c->subject->reading;
    *reading = c->settings; /* each log begins with zero counts, so that the message about missing records describes
                               only this log */
    visits_reader *r = visits_reader_new(c->subject, NULL, NULL);
    bool ok = visits_read(r, name);
    visits *v = visits_finish(r);
    if (v->records == 0 && reading->records > 0) {
        program_error("cannot tell: %s: no records match --where, --since and --until", name);
        reading->checked = true;
    }
    ok = program_has_records(reading, v->records, "cannot tell: ") && ok;
    if (ok && v->requests->len == 0)
        program_error("cannot tell: %s: %s", name, subject_reason_no_requests(c->subject));
    c->incomplete = program_reading_finish(reading) != PROGRAM_DONE || c->incomplete;
    ok = ok && v->requests->len > 0 && check_ids(c, v, name);
    if (ok)
        profile_add(c->profile, side, v);
    visits_free(v);
    return ok;
}

static int compare_report(const profile *p, bool json)
{
    static const int statuses[] = {[COMPARISON_EQUAL] = PROGRAM_DONE,  [COMPARISON_SLOWER] = STATUS_SLOWER,
                                   [COMPARISON_FASTER] = PROGRAM_DONE, [COMPARISON_FAILING] = STATUS_SLOWER,
                                   [COMPARISON_PLACES] = PROGRAM_DONE, [COMPARISON_CANNOT_TELL] = STATUS_CANNOT_TELL};
    comparison *c = comparison_make(p);
    int status = statuses[c->verdict];
    (json ? comparison_print_json : comparison_print)(c);
    comparison_free(c);
    return status;
}

int compare_logs(const compare_options *o, subject_options *subject, char **operands, int operand_count, bool json)
{
    bool split = o->after == NULL;
    char **sides[SIDES] = {operands, split ? operands + 1 : o->after};
    unsigned counts[SIDES] = {split ? 1 : (unsigned)operand_count, split ? 1 : g_strv_length(o->after)};
    comparing c = {.subject = subject, .settings = subject->reading, .profile = profile_new(counts)};
    bool ok = true;
    for (int side = 0; side < SIDES; side++)
        for (unsigned i = 0; i < counts[side]; i++)
            ok = compare_read_log(&c, side, sides[side][i]) && ok;
    subject->reading = c.settings;
    subject->reading.failed = c.incomplete;
    int status = ok ? compare_report(c.profile, json) : PROGRAM_PROBLEM;
    profile_free(c.profile);
    g_free(c.ids);
    return status;
}
