/* Filters: meaning of expressions, errors, and patterns compared with libc's. */
#include "text_support.h"

#include "filter/filter.h"
#include "filter/pattern.h"

#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>

static const char line[] = "DATE=20120314140446.500000 HOST=dpss1.lbl.gov PROG=dpss_server LVL=Usage NL.EVNT=WriteData "
                           "SEND.SZ=65537 ID=007 TEXT=\"a \\\"b\\\" c\" EMPTY=\"\" PART=1.50 BIG=18446744073709551615 "
                           "NEG=-3 WORD=abc TWICE=1 TWICE=2 not=5 in=6 EXP=1e3 PATH=/usr/lib/a.so ODD=9007199254740993";

static nl_filter *compile(const char *expression)
{
    nl_error_clear();
    nl_filter *filter = nl_filter_parse(expression);
    if (filter == NULL)
        fail_msg("%s", nl_error_message());
    return filter;
}

/* Returns the result of the expression for the record; the canonical form must have the same result and text. */
static bool meant(const char *expression, const nl_record *record)
{
    nl_filter *filter = compile(expression);
    bool result = nl_filter_matches(filter, record);
    nl_filter *again = compile(nl_filter_text(filter));
    assert_string_equal(nl_filter_text(again), nl_filter_text(filter));
    if (nl_filter_matches(again, record) != result)
        fail_msg("%s: is not %s", expression, nl_filter_text(filter));
    nl_filter_free(again);
    nl_filter_free(filter);
    return result;
}

static void expect(const nl_record *record, const char *const *yes, const char *const *no)
{
    for (; *yes != NULL; yes++)
        if (!meant(*yes, record))
            fail_msg("does not match: %s", *yes);
    for (; *no != NULL; no++)
        if (meant(*no, record))
            fail_msg("matches: %s", *no);
}

static void expect_of_line(const char *const *yes, const char *const *no)
{
    nl_record *record = read_line(NL_FORMAT_ULM, line);
    expect(record, yes, no);
    nl_record_free(record);
}

#define YES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO(...) ((const char *const[]){__VA_ARGS__, NULL})

static void joins_tests(void **state)
{
    (void)state;
    expect_of_line(YES("NL.EVNT == \"WriteData\" && SEND.SZ > 65536 || PROG ~ \"x*\"", /* as in the documentation */
                       "NL.EVNT==WriteData&&SEND.SZ>65536", "event = WriteData", "WORD == x || ID == 7",
                       "WORD == abc or WORD == x and WORD == y", "!WORD == x", "not WORD == x", "!!has WORD",
                       "NOT has NONE AND HAS ID Or has NONE", "!(has NONE) && has ID", "((((has ID))))",
                       "!(has NONE || has NOTHING)", "!(has ID && has NONE)", "!(has NONE && has ID) && has ID",
                       "has NONE && has ID || has ID && !has NONE", "not not not has NONE", "\n\thas ID \r\n"),
                   NO("WORD == x && ID == 7 || has NONE", "(WORD == abc || ID == 7) && has NONE",
                      "(WORD == abc or WORD == x) and WORD == y", "!has ID", "!(has ID || has NONE)",
                      "!(!has NONE && has ID)", "not (has ID or has NONE) or has NONE", "! ! !has ID"));
}

static void compares_numbers(void **state)
{
    (void)state;
    expect_of_line(YES("SEND.SZ == 65537", "SEND.SZ == 65537.0", "SEND.SZ == 6.5537e4", "SEND.SZ > 9", "ID == 7",
                       "ID < 10", "PART == 1.5", "PART > 1.49", "NEG == -3", "NEG<-2", "NEG >= -3.0", "EXP == 1000",
                       "BIG == 18446744073709551615", "BIG > 18446744073709551614", "BIG != 18446744073709551614",
                       "BIG > 9223372036854775807", "ODD > 9007199254740992", "ODD > 9007199254740992.0",
                       "ODD != 9007199254740992.0", "BIG < inf", "NEG > -inf", "SEND.SZ in (1, 2, 65537)",
                       "SEND.SZ not in (1, 2)", "EXP in (abc, 1000.0)"),
                   NO("SEND.SZ < 9", "SEND.SZ != 65537", "SEND.SZ <= 65536", "ID != 7", "ODD == 9007199254740992",
                      "ODD <= 9007199254740992.0", "BIG == 18446744073709551614", "BIG == 18446744073709551616",
                      "NEG > -3", "SEND.SZ not in (65537)", "EXP not in (x, 1e3)"));
}

static void compares_text(void **state)
{
    (void)state;
    expect_of_line(YES("ID == \"007\"", "ID != \"7\"", "ID == '007'", "WORD == abc", "WORD == \"abc\"", "WORD < abd",
                       "WORD < abcd", "WORD > ab", "WORD > 9", "WORD >= abc", "WORD != ABC", "EMPTY == \"\"",
                       "EMPTY < a", "EMPTY in (x, '')", "TEXT == \"a \\\"b\\\" c\"", "TEXT == 'a \"b\" c'",
                       "TEXT == \"a \\x22b\\x22 c\"", "WORD in (x, y, abc)", "WORD not in (\"ab\", abcd)",
                       "SEND.SZ < \"7\"", "PATH == /usr/lib/a.so", "PART == \"1.50\"", "PART != \"1.5\"", "TWICE == 1",
                       "HOST == dpss1.lbl.gov", "prog == dpss_server", "WORD != nan"),
                   NO("ID == \"7\"", "WORD < 9", "WORD > abc", "WORD == ABC", "EMPTY == \" \"", "EMPTY > a",
                      "TWICE == 2", "SEND.SZ > \"7\"", "WORD in (ab, abcd)", "word == abc", "WORD == \"abc\\x00\""));
}

/* A missing field makes every test false. */
static void misses_fields(void **state)
{
    (void)state;
    expect_of_line(YES("!(NONE == 1)", "!has NONE", "has EMPTY", "has DATE", "has level", "has TWICE"),
                   NO("NONE == 1", "NONE != 1", "NONE < 1", "NONE >= 1", "NONE ~ '*'", "NONE !~ x", "NONE =~ ''",
                      "NONE in (1)", "NONE not in (1)", "has NONE", "has id", "NONE == ''"));
    nl_record *record = nl_record_new();
    expect(record, YES("has ts", "!has event", "DATE == 0"),
           NO("has HOST", "has PROG", "has LVL", "has NL.EVNT", "LVL == Usage", "LVL != Usage", "LVL < Debug",
              "HOST != x", "event !~ x"));
    nl_record_free(record);
}

/* Keywords are names if an operator follows. */
static void knows_names_from_words(void **state)
{
    (void)state;
    expect_of_line(YES("not == 5", "not=5", "not not == 6", "in == 6", "in in (6)", "in not in (5)", "not in in (5)",
                       "has not", "has in && not has has", "not has and", "WORD != and and not == 5", "!not == 6",
                       "not ~ 5", "not < 6 or or == 1"),
                   NO("not != 5", "not !~ 5", "has has", "not has not", "and == 1", "or in (or)"));
}

static void compares_times(void **state)
{
    (void)state;
    expect_of_line(YES("DATE == 20120314140446.5", "ts == 2012-03-14T14:04:46.5Z", "DATE > 20120314140446",
                       "DATE > 2012-03-14", "ts < 2012-03-15", "ts >= \"2012-03-14 14:04\"",
                       "ts == 2012-03-14T15:04:46.500+01:00", "ts == 1331733886.5", "DATE != 0",
                       "ts in (1, 2012-03-14T14:04:46.5Z)", "DATE not in (1, 2)", "DATE ~ 20120314*", "ts ~ 2012-03-*",
                       "ts =~ \"T14:0[0-4]\"", "DATE =~ '^2012'", "ts == 1331733886.500000000"),
                   NO("DATE < 20120314140446.5", "ts > 2012-03-15", "DATE != 20120314140446.500", "DATE !~ 2012*",
                      "ts == 1331733886.500000001", "ts ~ 20120314*"));
}

static void compares_levels(void **state)
{
    (void)state;
    expect_of_line(YES("LVL == Usage", "LVL == \"usage\"", "level == Info", "LVL != Warning", "LVL > Warning",
                       "LVL <= Usage", "LVL <= Debug", "LVL < Important", "LVL in (Error, info)",
                       "LVL not in (Error, Odd)", "LVL ~ U*", "LVL !~ I*", "LVL =~ sage", "LVL != Odd"),
                   NO("LVL <= Warning", "LVL == Error", "LVL != info", "LVL > Usage", "LVL == Odd", "level in (Odd)"));
    nl_record *record = read_line(NL_FORMAT_ULM, "DATE=20120314140446 LVL=Odd");
    expect(record, YES("LVL == Odd", "LVL != Usage", "LVL in (Usage, Odd)", "LVL not in (Usage)", "has LVL"),
           NO("LVL < Debug", "LVL >= Emergency", "LVL != Odd", "LVL == odd", "LVL == Usage"));
    nl_record_clear(record);
    nl_record_set_level(record, NL_ALERT);
    expect(record, YES("LVL < Error", "LVL == alert", "LVL ~ Alert"), NO("LVL < Alert"));
    nl_record_free(record);
    record = read_line(NL_FORMAT_BP, "ts=2012-03-14T14:04:46Z event=e level=Warn prog=p X=1");
    expect(record, YES("LVL <= Warning", "LVL == Warning", "NL.EVNT == e", "level ~ Warn", "PROG = p"),
           NO("LVL ~ Warning", "LVL < Warning", "has HOST"));
    nl_record_free(record);
}

static void sees_every_type(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    nl_record_add_int(record, "I", -5);
    nl_record_add_uint(record, "U", UINT64_MAX);
    nl_record_add_uint(record, "SMALL", 5);
    nl_record_add_double(record, "D", 0.1);
    nl_record_add_double(record, "NAN", NAN);
    nl_record_add_bool(record, "B", true);
    nl_record_add_string(record, "NUL", "a\0b", 3);
    nl_record_add_string(record, "UTF", "gr\xc3\xbc\xc3\x9f", 6);
    expect(record,
           YES("I == -5", "I < 0.5", "I == '-5'", "I ~ -?", "U == 18446744073709551615", "U > 18446744073709551614",
               "U ~ *615", "SMALL == 5.0", "D == 0.1", "D < 0.10000000000000001 || D == 0.10000000000000001",
               "D == '0.1'", "D =~ '^0[.]1$'", "NAN == nan", "NAN != 1", "!NAN < 1 || NAN > 1", "B == true",
               "B != false", "B != 1", "NUL == \"a\\x00b\"", "NUL ~ a?b", "NUL =~ 'a.b$'", "UTF == gr\xc3\xbc\xc3\x9f",
               "UTF == \"gr\\xc3\\xbc\\xc3\\x9f\"", "UTF ~ gr*", "UTF ~ gr????"),
           NO("I == 5", "U == 18446744073709551616", "D == 0.10000000000000002", "NAN == 1", "B == 1", "NUL == a",
              "NUL ~ a", "UTF ~ gr??"));
    nl_record_free(record);
}

static void matches_patterns(void **state)
{
    (void)state;
    expect_of_line(
        YES("PROG ~ dpss*", "PROG ~ *server", "PROG ~ *", "PROG ~ d*s*r", "PROG ~ dpss?server", "PROG ~ \"dpss[_x]*\"",
            "PROG ~ \"dpss[!a-z]*\"", "PROG ~ [a-d]*[[:alpha:]]", "PROG !~ dpss", "PROG !~ *x*", "EMPTY ~ \"\"",
            "EMPTY ~ *", "EMPTY !~ ?", "TEXT ~ \"*\\\"b\\\"*\"", "PATH ~ /usr/*.so", "PATH ~ \"*\\.so\"",
            "PROG =~ dpss", "PROG =~ \"^dpss_.*r$\"", "PROG =~ \"(x|s){2}_\"", "EMPTY =~ \"^$\"", "PATH =~ \"\\.so$\"",
            "SEND.SZ =~ \"^6[0-9]+7$\"", "PROG =~ \"\"", "WORD =~ '^a\\w+$'"),
        NO("PROG ~ dpss", "PROG ~ server", "PROG ~ d*x*r", "PROG ~ dpss?", "PROG !~ dpss*", "EMPTY ~ ?", "PROG ~ \"\"",
           "PROG =~ '^$'", "PROG =~ \"^server\"", "PROG =~ 's{3}'", "PATH =~ \"[.]sox\"", "WORD =~ '\\d'"));
}

static void assert_refused(const char *expression, const char *reason)
{
    nl_error_clear();
    nl_filter *filter = nl_filter_parse(expression);
    if (filter != NULL)
        fail_msg("taken: %s", expression);
    const char *message = strstr(nl_error_message(), "column ");
    if (message == NULL || strcmp(message, reason) != 0)
        fail_msg("%s: \"%s\" is not \"%s\"", expression, nl_error_message(), reason);
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "column 1: expected a field name, has, not or (, not the end"},
        {"  ", "column 3: expected a field name, has, not or (, not the end"},
        {"A", "column 2: expected an operator (== != < <= > >= ~ !~ =~ in) after the field's name, not the end"},
        {"A B", "column 3: expected an operator (== != < <= > >= ~ !~ =~ in) after the field's name, not \"B\""},
        {"A ==", "column 5: expected a value (a word, or text in quotes), not the end"},
        {"A == == 1", "column 6: expected a value (a word, or text in quotes), not \"==\""},
        {"5 < A", "column 1: expected a field name, has, not or (, not \"5\""},
        {"A == 1 B == 2", "column 8: expected &&, || or the end, not \"B\""},
        {"A == 1 & B == 2", "column 8: expected &&, || or the end, not \"&\""},
        {"A == 1)", "column 7: expected &&, || or the end, not \")\""},
        {"(A == 1", "column 8: expected &&, || or ), not the end"},
        {"()", "column 2: expected a field name, has, not or (, not \")\""},
        {"A == 1 &&", "column 10: expected a field name, has, not or (, not the end"},
        {"A == \"x", "column 6: missing closing \""},
        {"A == 'x\\'", "column 6: missing closing '"},
        {"A == a=b", "column 7: expected the end of the value (put quotes around a value that contains special "
                     "characters), not \"=b\""},
        {"A in 1", "column 6: expected ( and a list of values, not \"1\""},
        {"A in ()", "column 7: expected a value (a word, or text in quotes), not \")\""},
        {"A in (1 2)", "column 9: expected a comma or ), not \"2)\""},
        {"A in (1,", "column 9: expected a value (a word, or text in quotes), not the end"},
        {"has", "column 4: expected a field's name, not the end"},
        {"has 5", "column 5: expected a field's name, not \"5\""},
        {"has (A)", "column 5: expected a field's name, not \"(A)\""},
        {"A ~ \"[a\"", "column 5: expected a glob: missing ]"},
        {"A =~ \"a(\"", "column 6: expected a regular expression: missing )"},
        {"A =~ \"a)\"", "column 6: expected a regular expression: missing ("},
        {"A =~ *", "column 6: expected a regular expression: nothing to repeat"},
        {"A =~ 'a{2,1}'",
         "column 6: expected a regular expression: a repetition must be {M}, {M,} or {M,N}, with numbers up to 255"},
        {"A =~ 'a{256}'",
         "column 6: expected a regular expression: a repetition must be {M}, {M,} or {M,N}, with numbers up to 255"},
        {"A =~ '(a)\\1'", "column 6: expected a regular expression: unknown escape; only \\d "
                          "\\s \\w \\D \\S \\W are known"},
        {"A =~ '[b-a]'", "column 6: expected a regular expression: the end of a range precedes its beginning"},
        {"A =~ '[[:foo:]]'",
         "column 6: expected a regular expression: unknown class; use [:alpha:] or another POSIX class"},
        {"A =~ 'a{100}b{29}'",
         "column 6: expected a regular expression: the pattern is too long, or its repetition counts are too large"},
        {"LVL < Odd", "column 7: expected a level: Emergency, Alert, Error, Warning, Auth, Security, Usage, System, "
                      "Important or Debug"},
        {"DATE > 20120314", "column 8: expected a time; write a day as 2012-03-14"},
        {"ts > soon",
         "column 6: expected a time, such as 2012-03-14T14:04:46Z or 20120314140446: invalid time: expected "
         "YYYYMMDDhhmmss, ISO 8601 or seconds since 1970"},
        {"A == 1\x01\xff",
         "column 7: expected the end of the value (put quotes around a value that contains special characters), not "
         "\"..\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i][0], cases[i][1]);
    assert_refused("A == ", "column 6: expected a value (a word, or text in quotes), not the end");
    assert_non_null(strstr(nl_error_message(), "filter \"A == \": column 6"));
}

static void assert_canonical(const char *expression, const char *expected)
{
    nl_filter *filter = compile(expression);
    assert_string_equal(nl_filter_text(filter), expected);
    nl_filter *again = compile(expected);
    assert_string_equal(nl_filter_text(again), expected);
    nl_filter_free(again);
    nl_filter_free(filter);
}

static void prints_canonical_forms(void **state)
{
    (void)state;
    assert_canonical("NL.EVNT=WriteData&&SEND.SZ>65536 or PROG ~ dpss*",
                     "NL.EVNT == \"WriteData\" && SEND.SZ > 65536 || PROG ~ \"dpss*\"");
    assert_canonical("((A==1)) and ((B==2 && C==3))", "A == 1 && B == 2 && C == 3");
    assert_canonical("(A=1 or B=2) and C=3", "(A == 1 || B == 2) && C == 3");
    assert_canonical("A=1 or (B=2 and C=3) or (D=4 or E=5)", "A == 1 || B == 2 && C == 3 || D == 4 || E == 5");
    assert_canonical("not A = 1", "!(A == 1)");
    assert_canonical("not not not has A", "!has A");
    assert_canonical("!(!(A = 1 or has B))", "A == 1 || has B");
    assert_canonical("!(A = 1 and !(B=2 or has C))", "!(A == 1 && !(B == 2 || has C))");
    assert_canonical("A NOT IN(1,'x',y)", "A not in (1, \"x\", \"y\")");
    assert_canonical("level <= warning or LVL == info or LVL == odd",
                     "level <= Warn || LVL == Usage || LVL == \"odd\"");
    assert_canonical("DATE > 2012-03-14 and ts > '2012-03-14 01:00+01:00'",
                     "DATE > 20120314000000.000000 && ts > 2012-03-14T00:00:00.000000Z");
    assert_canonical("A == 'a\"b\\'c\\\\d\\q\\x01\xc3\xbc'", "A == \"a\\\"b'c\\\\d\\\\q\\x01\xc3\xbc\"");
    assert_canonical("A == +1.50e0", "A == +1.50e0");
    assert_canonical("A =~ '\\.'", "A =~ \"\\\\.\"");
}

/* Returns `before`, then `unit` several times, then `after`, like an expression from an unknown sender. */
static char *repeated(const char *before, const char *unit, size_t count, const char *after)
{
    nl_buffer text = {0};
    nl_buffer_append(&text, before, strlen(before));
    while (count-- > 0)
        nl_buffer_append(&text, unit, strlen(unit));
    nl_buffer_append(&text, after, strlen(after) + 1);
    return text.data;
}

static void assert_limit(const char *before, const char *unit, size_t most, const char *after)
{
    for (size_t count = most; count <= most + 1; count++) {
        char *text = repeated(before, unit, count, after);
        nl_filter *filter = nl_filter_parse(text);
        if ((filter != NULL) != (count == most))
            fail_msg("%zu of \"%s\": %s", count, unit, filter != NULL ? "taken" : nl_error_message());
        nl_filter_free(filter);
        free(text);
    }
}

static void is_bounded(void **state)
{
    (void)state;
    assert_limit("A == \"", "x", NL_FILTER_SIZE_MAX - 7, "\"");
    assert_limit("", "has A or ", NL_FILTER_TESTS_MAX - 1, "has A");
    assert_limit("A ~ \"", "x", NL_FILTER_PATTERN_MAX - 2, "\"");
    assert_limit("A =~ \"", "x", NL_FILTER_PATTERN_MAX, "\"");
    assert_limit("A =~ \"a{128}\" && B =~ \"b{127}\" && C =~ \"", "c", 1, "\"");
    /* The canonical form needs more space than the original text. */
    assert_limit("A == \"", "\x01", (NL_FILTER_SIZE_MAX - 7) / 4, "\"");
    char *open = repeated("", "(", NL_FILTER_DEPTH_MAX, "has A");
    char *text = repeated(open, ")", NL_FILTER_DEPTH_MAX, "");
    nl_filter_free(compile(text));
    free(text);
    free(open);
    open = repeated("", "(", NL_FILTER_SIZE_MAX - 5, "has A");
    assert_null(nl_filter_parse(open));
    free(open);
    open = repeated("", "!(has B && ", NL_FILTER_DEPTH_MAX, "has A");
    text = repeated(open, ")", NL_FILTER_DEPTH_MAX, "");
    nl_filter_free(compile(text));
    free(text);
    free(open);
    open = repeated("", "!", NL_FILTER_SIZE_MAX - 5, "has A");
    nl_filter_free(compile(open));
    free(open);
    assert_null(nl_filter_parse("A =~ '(((((a{255}){255}){255}){255}){255})'"));
    open = repeated("A =~ '()", "{255}", 800, "'");
    nl_filter_free(compile(open));
    free(open);
    open = repeated("A =~ 'x", "{0}", 1300, "'");
    nl_filter_free(compile(open));
    free(open);
    open = repeated("A =~ '", "(", 33, "a");
    text = repeated(open, ")", 33, "'");
    assert_null(nl_filter_parse(text));
    free(text);
    free(open);
}

/* Random patterns of few letters, so that they often match. */
static void random_pattern(uint64_t *state, const char *letters, char *out, size_t most)
{
    size_t size = random_below(state, most + 1);
    for (size_t i = 0; i < size; i++)
        out[i] = letters[random_below(state, strlen(letters))];
    out[size] = '\0';
}

static bool pattern_matches(const nl_pattern *pattern, const char *text)
{
    uint64_t steps = UINT64_MAX;
    bool matches;
    assert_int_equal(nl_pattern_match(pattern, (nl_string){text, strlen(text)}, &steps, &matches), NL_OK);
    return matches;
}

static void globs_as_the_shell(void **state)
{
    (void)state;
    uint64_t seed = 4711;
    char pattern[12], text[12];
    size_t compiled = 0, matched = 0;
    for (int i = 0; i < 200000; i++) {
        random_pattern(&seed, "ab*?[]!-\\", pattern, sizeof pattern - 1);
        random_pattern(&seed, "ab-]", text, sizeof text - 1);
        nl_pattern *p =
            nl_pattern_compile((nl_string){pattern, strlen(pattern)}, NL_PATTERN_GLOB, NL_PATTERN_POSITIONS_MAX);
        if (p == NULL) /* an open bracket */
            continue;
        compiled++;
        bool matches = pattern_matches(p, text);
        nl_pattern_free(p);
        matched += matches;
        size_t size = strlen(pattern);
        if (size > 0 && pattern[size - 1] == '\\') /* fnmatch never matches this */
            continue;
        if (matches != (fnmatch(pattern, text, 0) == 0))
            fail_msg("\"%s\" %s \"%s\"", pattern, matches ? "matches" : "does not match", text);
    }
    assert_true(compiled > 50000 && matched > 5000);
}

static void finds_as_regexec(void **state)
{
    (void)state;
    uint64_t seed = 815;
    char pattern[14], text[10];
    size_t compiled = 0, matched = 0;
    for (int i = 0; i < 300000; i++) {
        random_pattern(&seed, "abab.*+?()|[]^$-{2,3}", pattern, sizeof pattern - 1);
        random_pattern(&seed, "ab", text, sizeof text - 1);
        regex_t theirs;
        nl_pattern *ours =
            nl_pattern_compile((nl_string){pattern, strlen(pattern)}, NL_PATTERN_REGEX, NL_PATTERN_POSITIONS_MAX);
        if (ours == NULL)
            continue;
        if (regcomp(&theirs, pattern, REG_EXTENDED | REG_NOSUB) == 0) {
            bool matches = pattern_matches(ours, text);
            if (matches != (regexec(&theirs, text, 0, NULL, 0) == 0))
                fail_msg("\"%s\" is %sfound in \"%s\"", pattern, matches ? "" : "not ", text);
            regfree(&theirs);
            compiled++;
            matched += matches;
        }
        nl_pattern_free(ours);
    }
    assert_true(compiled > 20000 && matched > 5000 && matched < compiled);
}

/* A matcher that backtracks would take extremely long for these patterns. */
static void never_backtracks(void **state)
{
    (void)state;
    char *text = repeated("DATE=20120314140446 A=", "a", 200000, "");
    nl_record *record = read_line(NL_FORMAT_ULM, text);
    expect(record, YES("A !~ *a*a*a*a*a*a*a*a*a*a*b", "!A =~ '(a*)*b'", "!A =~ '(a|aa)+$b'", "A =~ '^(a|a|aa)+$'"),
           NO("A =~ '(a?){60}a{60}b'"));
    nl_record_free(record);
    free(text);
}

/* Returns a record with one field A, a repetition of the letters. */
static nl_record *record_of(const char *letters, size_t count)
{
    char *text = repeated("DATE=20120314140446 A=", letters, count, "");
    nl_record *read = read_line(NL_FORMAT_ULM, text), *record = nl_record_new();
    nl_record_copy(record, read);
    nl_record_free(read);
    free(text);
    return record;
}

/* Returns the steps of an expression; UINT64_MAX beyond the limit. */
static uint64_t steps_of(const char *expression, const nl_record *record)
{
    nl_filter *filter = compile(expression);
    uint64_t steps = NL_FILTER_STEPS_MAX;
    bool matches;
    nl_status status = nl_filter_match(filter, record, &steps, &matches);
    if (status == NL_OK)
        assert_int_equal(matches, nl_filter_matches(filter, record));
    nl_filter_free(filter);
    return status == NL_OK ? NL_FILTER_STEPS_MAX - steps : UINT64_MAX;
}

/* The steps of a match are counted, repeatable, and bounded per byte of the text. */
static void counts_its_cost(void **state)
{
    (void)state;
    enum { COUNT = 1000, BYTES = 2 * COUNT };
    nl_record *record = record_of("ab", COUNT);
    uint64_t slowest = steps_of("A =~ 'a[ab]{124}c'", record);
    assert_true(slowest >= BYTES && slowest <= 26 * BYTES + 100);
    assert_int_equal(slowest, steps_of("A =~ 'a[ab]{124}c'", record));
    assert_true(steps_of("A ~ *c*", record) <= 3 * BYTES);
    assert_true(steps_of("A ~ ab*", record) < 100); /* the second byte decides */
    assert_true(steps_of("A == 1 || A > 5 || has B || LVL <= Warning", record) < 2000);
    nl_record_free(record);
}

static void keeps_to_its_budget(void **state)
{
    (void)state;
    nl_record *record = record_of("ab", 100000);
    assert_int_equal(steps_of("A =~ 'a[ab]{124}c'", record), UINT64_MAX);
    assert_true(steps_of("A ~ *c*", record) < NL_FILTER_STEPS_MAX);
    char *text = repeated("", "A =~ c || ", NL_FILTER_TESTS_MAX - 1, "A =~ c");
    assert_int_equal(steps_of(text, record), UINT64_MAX);
    free(text);
    nl_record_free(record);

    text = repeated("DATE=20120314140446", " F=1", 20000, "");
    record = read_line(NL_FORMAT_ULM, text);
    char *tests = repeated("", "has A || ", NL_FILTER_TESTS_MAX - 1, "has A");
    assert_int_equal(steps_of(tests, record), UINT64_MAX);
    free(tests);
    free(text);
    nl_record_free(record);

    /* A match beyond the budget does not count. */
    record = record_of("ab", 100);
    nl_filter *filter = compile("A =~ 'b$'");
    for (uint64_t budget = 0; budget < 2000; budget++) {
        uint64_t steps = budget;
        bool matches = false;
        nl_status status = nl_filter_match(filter, record, &steps, &matches);
        assert_int_equal(matches, status == NL_OK);
        assert_true(steps <= budget);
    }
    uint64_t steps = 2000;
    bool matches = false;
    assert_int_equal(nl_filter_match(filter, record, &steps, &matches), NL_OK);
    assert_true(matches);
    nl_filter_free(filter);
    nl_record_free(record);
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* These expressions would compile slowly without limits. The bound is far above the cost of each. */
static void compiles_in_bounded_time(void **state)
{
    (void)state;
    const struct {
        const char *before, *unit;
        size_t count;
        const char *after;
    } cases[] = {
        {"A =~ '(a[", "[:alpha:][:digit:]", 200, "]{0}){64}'"},
        {"A =~ '(a", "()", 2000, "){128}'"},
        {"A =~ '(a|b|c", "|d", 60, "()()()()){2}'"},
        {"A =~ '(a[", "!-~", 1300, "]){60}'"},
        {"A =~ '(", "$", 127, ")+'"},
        {"A =~ '", "a?", 128, "'"},
        {"A =~ '((((((a{2}){2}){2}){2}){2}){2})", "*", 3900, "'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = repeated(cases[i].before, cases[i].unit, cases[i].count, cases[i].after);
        double before = processor_ms();
        nl_filter *filter = nl_filter_parse(text);
        double took = processor_ms() - before;
        if (took > 20)
            fail_msg("%.60s: %.1f ms", text, took);
        nl_filter_free(filter);
        free(text);
    }
}

/* A repetition means the same as the written-out text. */
static void repeats_as_written_out(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"^(ab|c){3}$", "^(ab|c)(ab|c)(ab|c)$"},
        {"^(a{2}){2,3}$", "^aaaa(aa)?$"},
        {"^(a+b?){2}$", "^a+b?a+b?$"},
        {"^((a|b{2}){2}c){2}$", "^(a|bb)(a|bb)c(a|bb)(a|bb)c$"},
        {"^(a{0,2}b){2,}$", "^a?a?b(a?a?b)+$"},
        {"^a{2}{3}$", "^aaaaaa$"},
        {"^(a{65}b){1}(a{2}b){0,2}$", "^a{60}aaaaab((aab)?aab)?$"},
    };
    uint64_t seed = 4;
    char text[90];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        nl_pattern *p[2];
        size_t matched = 0;
        for (int k = 0; k < 2; k++) {
            p[k] = nl_pattern_compile((nl_string){pairs[i][k], strlen(pairs[i][k])}, NL_PATTERN_REGEX,
                                      NL_PATTERN_POSITIONS_MAX);
            assert_non_null(p[k]);
        }
        for (int n = 0; n < 20000; n++) {
            size_t fixed = i == 6 ? 65 : 0;
            memset(text, 'a', fixed);
            random_pattern(&seed, "aabbc", text + fixed, 10);
            assert_int_equal(pattern_matches(p[0], text), pattern_matches(p[1], text));
            matched += pattern_matches(p[0], text);
        }
        assert_true(matched > 0);
        nl_pattern_free(p[0]);
        nl_pattern_free(p[1]);
    }
}

static void *match_often(void *argument)
{
    const nl_filter *filter = argument;
    nl_record *record = read_line(NL_FORMAT_ULM, line);
    for (int i = 0; i < 2000; i++)
        assert_true(nl_filter_matches(filter, record));
    nl_record_free(record);
    return NULL;
}

static void serves_many_threads(void **state)
{
    (void)state;
    nl_filter *filter = compile("PROG =~ '^d.*r$' && SEND.SZ > 1e-300 && DATE ~ 2012* && ID in (6, 7)");
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, match_often, filter), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    nl_filter_free(filter);
}

static void has_a_filter_that_is_none(void **state)
{
    (void)state;
    nl_record *record = nl_record_new();
    assert_true(nl_filter_matches(NULL, record));
    nl_filter_free(NULL);
    nl_record_free(record);
}

/* Returns whether a record may match if the equality tests on the fields in `absent` cannot be true. */
static bool may_match(const char *text, const char *absent)
{
    nl_filter *filter = compile(text);
    nl_filter_equality list[NL_FILTER_TESTS_MAX];
    bool impossible[NL_FILTER_TESTS_MAX] = {false};
    size_t count = nl_filter_list_equalities(filter, list, NL_FILTER_TESTS_MAX);
    for (size_t i = 0; i < count; i++)
        impossible[list[i].test] = list[i].name.size == 1 && strchr(absent, list[i].name.data[0]) != NULL;
    bool may = nl_filter_may_match(filter, impossible);
    nl_filter_free(filter);
    return may;
}

static void excludes_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *absent;
        bool may;
    } cases[] = {
        {"a == 1", "a", false},
        {"a == 1", "", true},
        {"a == 1 && b == 2", "a", false},
        {"a == 1 && b == 2", "b", false},
        {"a == 1 || b == 2", "b", true},
        {"a == 1 || b == 2", "ab", false},
        {"(a == 1 || b == 2) && c == 3", "ab", false},
        {"(a == 1 || b == 2) && c == 3", "c", false},
        {"(a == 1 || b == 2) && c == 3", "a", true},
        {"a in (1, 2)", "a", false},
        {"!(a == 1)", "a", true},
        {"!(a != 1)", "a", true}, /* also true for records without the field */
        {"!(!(a == 1))", "a", false},
        {"!(a == 1 || b == 2)", "ab", true},
        {"!(!(a == 1) || b == 2)", "a", false},
        {"a == 1 || has b", "a", true},
        {"a == 1 && has b || a == 2 && PROG == p", "a", false},
        {"HOST == a", "a", true},
        {"a =~ 1 || a > 1", "a", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (may_match(cases[i].text, cases[i].absent) != cases[i].may)
            fail_msg("%s without %s", cases[i].text, cases[i].absent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(excludes_values),
        cmocka_unit_test(joins_tests),
        cmocka_unit_test(compares_numbers),
        cmocka_unit_test(compares_text),
        cmocka_unit_test(misses_fields),
        cmocka_unit_test(knows_names_from_words),
        cmocka_unit_test(compares_times),
        cmocka_unit_test(compares_levels),
        cmocka_unit_test(sees_every_type),
        cmocka_unit_test(matches_patterns),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(prints_canonical_forms),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(globs_as_the_shell),
        cmocka_unit_test(finds_as_regexec),
        cmocka_unit_test(never_backtracks),
        cmocka_unit_test(counts_its_cost),
        cmocka_unit_test(keeps_to_its_budget),
        cmocka_unit_test(compiles_in_bounded_time),
        cmocka_unit_test(repeats_as_written_out),
        cmocka_unit_test(serves_many_threads),
        cmocka_unit_test(has_a_filter_that_is_none),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
