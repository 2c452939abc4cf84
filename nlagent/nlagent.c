/* nlagent: queries agents (nlagentd) for the data of sensors, and directories for agents. */
#include "config.h"

#include "agents/find.h"
#include "agents/gather.h"
#include "base/environment_value.h"
#include "base/error.h"
#include "base/monotonic.h"
#include "base/time_internal.h"
#include "program/own_log.h"
#include "program/program.h"
#include "record/format.h"
#include "transport/writer.h"

#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRITE_SIZE = 64 << 10 /* maximum bytes per write */ };

enum {
    CONDITIONS_MAX = 16, /* maximum total number of names and values */
    FIND_INTERVAL_S = 15
};

typedef struct arguments {
    agents_options ask;
    const char *hosts, *output, *dest, *with;
    nl_format format;
    const char *conditions[CONDITIONS_MAX + 1]; /* arguments of the request: name, value, name, value, ..., NULL */
    size_t condition_count;
    int64_t since_ns; /* INT64_MIN: not given */
    bool details;
    int64_t duration_ns; /* 0: no limit */
    char **operands;     /* command-line arguments after the command */
    int operand_count;
} arguments;

/* ---- options ---- */

/* Adds an argument to the request. If the argument exists, because an option is repeated, replaces its value. */
static void add_condition(arguments *a, const char *name, const char *value)
{
    size_t i = 0;
    while (i < a->condition_count && strcmp(a->conditions[i], name) != 0)
        i += 2;
    if (i == a->condition_count)
        a->condition_count += 2;
    a->conditions[i] = name;
    a->conditions[i + 1] = value;
}

/* Adds an option's value to the request, as the argument with the option's name. */
static bool set_condition(void *settings, const nl_option *row, const char *value)
{
    add_condition(settings, row->name, row->type == NL_OPTION_FLAG ? "true" : value);
    return true;
}

/* Adds the interval to the request, in seconds. */
static bool set_interval(void *settings, const nl_option *row, const char *value)
{
    static char seconds[32];
    int64_t interval_ns = 0;
    nl_option plain = *row;
    plain.offset = 0;
    plain.size = sizeof interval_ns;
    if (!nl_option_set_by_type(&plain, &interval_ns, value))
        return false;
    snprintf(seconds, sizeof seconds, "%.9g", (double)interval_ns / 1e9);
    add_condition(settings, row->name, seconds);
    return true;
}

/* Adds the period of summaries to the request, in minutes. */
static bool set_summary(void *settings, const nl_option *row, const char *value)
{
    static const char *const minutes[] = {"1", "10", "60"};
    unsigned choice = 0;
    nl_option plain = *row;
    plain.offset = 0;
    plain.size = sizeof choice;
    if (!nl_option_set_by_type(&plain, &choice, value))
        return false;
    add_condition(settings, row->name, minutes[choice]);
    return true;
}

#define WITH_CONDITIONS "query subscribe start collect"
#define WITH_RECORDS "status settings query subscribe summaries collect"

static const nl_option options[] = {
    {.name = "hosts",
     .value = "EXPRESSION",
     .commands = "collect",
     NL_OPTION_MEMBER(arguments, hosts),
     .help = "Query the agents whose directory entries match EXPRESSION, such as 'host=dpss*'"},
    {0},
};

static const nl_option sensor_options[] = {
    {.name = "interval",
     .letter = 'i',
     .type = NL_OPTION_DURATION,
     .initial = "(1s)",
     .minimum = 1000000,
     .maximum = 86400 * NL_NS_PER_SECOND,
     .commands = WITH_CONDITIONS,
     .set = set_interval,
     .help = "Interval between a sensor's measurements"},
    {.name = "where",
     .value = "EXPRESSION",
     .commands = WITH_CONDITIONS,
     .set = set_condition,
     .help = "Send only records that match EXPRESSION"},
    {.name = "field",
     .value = "NAME",
     .commands = WITH_CONDITIONS,
     .set = set_condition,
     .help = "Field to which --change, --above, --below and --percent apply"},
    {.name = "change",
     .type = NL_OPTION_FLAG,
     .commands = WITH_CONDITIONS,
     .set = set_condition,
     .help = "Send a record only when the value changes"},
    {.name = "above",
     .value = "N",
     .commands = WITH_CONDITIONS,
     .set = set_condition,
     .help = "Send a record only when the value rises above N or falls below the --below threshold"},
    {.name = "below",
     .value = "N",
     .initial = "(the value of --above)",
     .commands = WITH_CONDITIONS,
     .set = set_condition,
     .help = "Lower threshold for --above"},
    {.name = "percent",
     .value = "N",
     .commands = WITH_CONDITIONS,
     .set = set_condition,
     .help = "Send a record only when the value differs by more than N percent from the last value sent"},
    {.name = "summary",
     .type = NL_OPTION_CHOICE,
     .choices = "1m|10m|1h",
     .commands = WITH_CONDITIONS " summaries",
     .set = set_summary,
     .help = "Send summaries of this period instead of records"},
    {.name = "since",
     .type = NL_OPTION_TIME,
     .commands = "summaries",
     NL_OPTION_MEMBER(arguments, since_ns),
     .help = "Print only summaries that begin at TIME or later"},
    {0},
};

static const nl_option output_options[] = {
    {.name = "format",
     .initial = "(by the suffix of the output file; otherwise ulm)",
     .type = NL_OPTION_CHOICE,
     .list_choices = nl_format_choices,
     .commands = WITH_RECORDS,
     NL_OPTION_MEMBER(arguments, format),
     .help = "Output format"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "-",
     .commands = WITH_RECORDS,
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write records to FILE; - is standard output"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     .commands = "collect",
     NL_OPTION_MEMBER(arguments, dest),
     .help = "Send records to URL: a collector (x-netlog://HOST) or any other log URL"},
    {.name = "with",
     .value = "URL",
     .commands = "collect",
     NL_OPTION_MEMBER(arguments, with),
     .help = "Also collect the records that the collector at URL (x-netlog://HOST) receives"},
    {.name = "duration",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     .commands = "subscribe collect",
     NL_OPTION_MEMBER(arguments, duration_ns),
     .help = "Stop after DURATION"},
    {.name = "details",
     .type = NL_OPTION_FLAG,
     .commands = "list",
     NL_OPTION_MEMBER(arguments, details),
     .help = "Also list the events and fields of each sensor"},
    {0},
};

static const options_command commands[] = {
    {"list", NULL, "List the available and the running sensors of the agent"},
    {"status", NULL, "Print the agent's state"},
    {"settings", NULL, "Print the agent's settings that have a value"},
    {"query", "SENSOR", "Print the sensor's current measurement"},
    {"subscribe", "SENSOR", "Print one measurement per interval, until SIGINT"},
    {"start", "SENSOR", "Start a sensor, which then runs even without subscribers"},
    {"stop", "SENSOR", "Stop a sensor that \"nlagent start\" started"},
    {"summaries", "SENSOR", "Print the minimum, mean, maximum and percentiles of each field over the last day"},
    {"find", "[EXPRESSION]", "Find the agents and sensors that match EXPRESSION, such as 'sensor=tcp & host=dpss*'"},
    {"collect", "SENSOR...", "Send the measurements of sensors on several agents to one file or collector"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, agents_place_rows, offsetof(arguments, ask)},
                                      {NULL, options, 0},
                                      {"Selecting records", sensor_options, 0},
                                      {"Output", output_options, 0},
                                      {"Security and LDAP", agents_security_rows, offsetof(arguments, ask)},
                                      {0}},
    .commands = commands,
    .summary = "Query agents for sensor data, and directories for agents.",
    .notes = "A SENSOR is a sensor's name, followed by any arguments, such as cpu or 'ping?host=dpss1&count=3'",
};

/* ---- output ---- */

/* The output of records: a log or a writer. */
typedef struct sink {
    nl_writer *writer;
    nl_log *log;
    bool failed;
} sink;

static sink sink_open(const arguments *a)
{
    sink s = {0};
    if (a->dest != NULL)
        s.log = program_open_log("nlagent", a->dest, true);
    else
        s.writer = nl_writer_open(a->output, &(nl_writer_options){.format = a->format, .buffer_size = WRITE_SIZE});
    if (s.log == NULL && s.writer == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    return s;
}

static bool sink_check(sink *s, nl_status status)
{
    s->failed = status < NL_OK;
    return !s->failed || program_print_error();
}

/* Writes a record. On failure, reports the problem and returns false. */
static bool sink_put(void *user, const nl_record *record)
{
    sink *s = user;
    return sink_check(s, s->log != NULL ? nl_write_record(s->log, record) : nl_writer_put(s->writer, record));
}

/* Flushes the records that were written. On failure, reports the problem and returns false. */
static bool sink_flush(void *user)
{
    sink *s = user;
    return s->writer == NULL || sink_check(s, nl_writer_flush(s->writer));
}

/* Closes the output. If writing any record has failed, reports the problem and returns false. */
static bool sink_close(sink *s)
{
    if (s->failed && s->writer != NULL) {
        nl_writer_discard(s->writer);
        return false;
    }
    bool good = (s->log != NULL ? nl_close(s->log) : nl_writer_close(s->writer)) == NL_OK;
    if (!good && !s->failed)
        program_print_error();
    return good && !s->failed;
}

/* Prints text from an agent. Replaces control characters, because the agent may be hostile. */
static void print_text(const char *before, const char *text)
{
    char *copy = program_copy(text);
    program_replace_controls(copy, strlen(copy));
    for (char *c = copy; (c = strpbrk(c, "\n\t")) != NULL;)
        *c = '?';
    printf("%s%s", before, copy);
    free(copy);
}

/* ---- requests ---- */

/* Sends and frees a message. Returns the reply, which the caller frees. Exits with a message on failure. */
static soap_call request_send(const arguments *a, nl_buffer *message)
{
    soap_call reply;
    client *c = client_new(agents_first_url(&a->ask), &a->ask.client);
    if (c == NULL)
        program_fail_with_error(PROGRAM_USAGE);
    if (!client_call(c, message, &reply))
        program_fail_with_error(PROGRAM_PROBLEM);
    client_free(c);
    nl_buffer_free(message);
    return reply;
}

/* Writes the records of a reply. If there are no records, prints the message `none`, unless `none` is NULL. Returns the
 * exit status. */
static int print_records(const arguments *a, const soap_call *reply, const char *none)
{
    nl_buffer lines = {0};
    const nl_record *record;
    if (!soap_lines(reply, &lines))
        program_fail_with_error(PROGRAM_PROBLEM);
    sink s = sink_open(a);
    nl_decoder *decoder = nl_decoder_new(NULL);
    nl_decoder_feed(decoder, lines.data, lines.size);
    nl_status status = NL_OK;
    while (status == NL_OK && nl_decoder_next(decoder, &record) == NL_OK)
        status = sink_put(&s, record) ? NL_OK : NL_FAILED;
    const bool missing = none != NULL && nl_decoder_get_stats(decoder)->records == 0;
    if (missing)
        program_error("%s: %s", a->operands[0], none);
    nl_decoder_free(decoder);
    nl_buffer_free(&lines);
    return sink_close(&s) && !missing ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* Requests an operation whose reply contains records or nothing, and prints the records. Returns the exit status. */
static int request_records(const arguments *a, const char *operation, bool with_sensor, bool with_conditions)
{
    nl_buffer message = {0};
    if (a->operand_count != with_sensor)
        program_fail(PROGRAM_USAGE, "%s: %s", a->operands[-1],
                     with_sensor ? "expected one SENSOR" : "too many arguments");
    soap_begin(&message, operation);
    soap_put(&message, "format", "ulm");
    if (with_sensor)
        soap_put(&message, "sensor", a->operands[0]);
    for (size_t i = 0; i < a->condition_count; i += 2)
        if (with_conditions)
            soap_put(&message, a->conditions[i], a->conditions[i + 1]);
        else if (strcmp(a->conditions[i], "summary") == 0)
            soap_put(&message, "minutes", a->conditions[i + 1]);
    if (a->since_ns != INT64_MIN) {
        char since[NL_TIME_TEXT_SIZE];
        nl_time_format_iso(a->since_ns, since);
        soap_put(&message, "since", since);
    }
    soap_end(&message, operation);
    soap_call reply = request_send(a, &message);
    const bool summaries = strcmp(operation, "Summaries") == 0;
    int status = print_records(
        a, &reply,
        summaries ? "no summaries yet; nlagentd computes them after the first request, while the sensor runs" : NULL);
    soap_call_free(&reply);
    return status;
}

static int run_status(const arguments *a)
{
    return request_records(a, "Status", false, false);
}

static int run_settings(const arguments *a)
{
    return request_records(a, "Settings", false, false);
}

static int run_query(const arguments *a)
{
    return request_records(a, "Query", true, true);
}

static int run_start(const arguments *a)
{
    return request_records(a, "Start", true, true);
}

static int run_stop(const arguments *a)
{
    return request_records(a, "Stop", true, false);
}

static int run_summaries(const arguments *a)
{
    return request_records(a, "Summaries", true, false);
}

static int run_list(const arguments *a)
{
    static const char instance[] = "sensor.instance.", field[] = "sensor.field.";
    nl_buffer message = {0};
    soap_begin(&message, "List");
    soap_put(&message, "details", a->details ? "true" : "false");
    soap_end(&message, "List");
    soap_call reply = request_send(a, &message);
    for (size_t i = 0; i < reply.count; i++) {
        const char *name = reply.arguments[i].name, *value = reply.text.data + reply.arguments[i].value;
        const char *next = i + 1 < reply.count ? reply.arguments[i + 1].name : "";
        if (strcmp(name, "sensor.name") == 0) {
            print_text("", value);
        } else if (strcmp(name, "sensor.what") == 0) {
            print_text("\n    ", value);
            puts("");
        } else if (strcmp(name, "sensor.arguments") == 0 && *value != '\0') {
            print_text("    ", value);
            puts("");
        } else if (strcmp(name, "sensor.instance.sensor") == 0) {
            print_text("    * ", value);
        } else if (strncmp(name, instance, strlen(instance)) == 0) {
            print_text(" ", name + strlen(instance));
            print_text("=", value);
            if (strncmp(next, instance, strlen(instance)) != 0)
                puts("");
        } else if (strncmp(name, field, strlen(field)) == 0) {
            print_text(strcmp(name, "sensor.field.event") == 0 ? "        " : " ", value);
            if (strcmp(name, "sensor.field.meaning") == 0)
                puts("");
        }
    }
    soap_call_free(&reply);
    return PROGRAM_DONE;
}

static void print_found(void *user, const char *host, const char *url, const char *sensor, const char *events)
{
    ++*(size_t *)user;
    print_text("", host);
    print_text("\t", url);
    print_text("\t", sensor);
    print_text("\t", events);
    puts("");
}

static int run_find(const arguments *a)
{
    size_t count = 0;
    if (a->operand_count > 1)
        program_fail(PROGRAM_USAGE, "find: too many arguments; quote the EXPRESSION");
    const char *expression = a->operand_count == 1 ? a->operands[0] : "";
    if (!agents_find_sensors(&a->ask, agents_directory_url(&a->ask), expression, print_found, &count))
        program_fail_with_error(PROGRAM_PROBLEM);
    if (count == 0)
        program_error("no matching sensors are registered");
    return count > 0 ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* ---- subscribe and collect ---- */

static void add_found(void *user, const char *host, const char *url, const char *sensor, const char *events)
{
    (void)host, (void)sensor, (void)events;
    if (!gather_add(user, url))
        program_print_error();
}

static bool add_hosts(const arguments *a, gathering *all)
{
    return a->hosts == NULL || agents_find_sensors(&a->ask, agents_directory_url(&a->ask), a->hosts, add_found, all);
}

/* Waits for a signal, the end of the duration, or the end of all streams. Meanwhile, adds agents that register with the
 * directory. Returns the exit status. */
static int wait_for_end(const arguments *a, gathering *all)
{
    int64_t start_ns = nl_monotonic_ns(), now_ns = start_ns, found_ns = start_ns;
    while (!program_was_stopped() && !gather_is_over(all) &&
           (a->duration_ns == 0 || now_ns - start_ns < a->duration_ns)) {
        usleep(50000);
        now_ns = nl_monotonic_ns();
        if (now_ns - found_ns >= FIND_INTERVAL_S * NL_NS_PER_SECOND) {
            found_ns = now_ns;
            add_hosts(a, all); /* try again, because the directory may reply now */
        }
    }
    bool over = gather_is_over(all);
    if (over && nl_error_get_code() != NL_ERROR_NONE)
        program_print_error();
    return over ? PROGRAM_PROBLEM : PROGRAM_DONE;
}

static int gather_sensors(const arguments *a, bool once)
{
    sink s = sink_open(a);
    const gather_options o = {.client = a->ask.client,
                              .sensors = a->operands,
                              .arguments = a->conditions,
                              .put = sink_put,
                              .flush = sink_flush,
                              .user = &s,
                              .once = once};
    program_catch_signals();
    gathering *all = gather_new(&o);
    bool good = add_hosts(a, all);
    for (size_t i = 0; i < a->ask.agent_count && good; i++)
        good = gather_add(all, a->ask.agents[i]);
    if (good && a->ask.agent_count == 0 && a->hosts == NULL)
        good = gather_add(all, AGENTS_DEFAULT_URL);
    if (good && a->with != NULL)
        good = gather_add_collector(all, a->with);
    int status = PROGRAM_PROBLEM;
    if (good)
        status = wait_for_end(a, all);
    else
        program_print_error();
    gather_free(all);
    return sink_close(&s) ? status : PROGRAM_PROBLEM;
}

static int run_subscribe(const arguments *a)
{
    if (a->operand_count != 1)
        program_fail(PROGRAM_USAGE, "subscribe: expected one SENSOR");
    return gather_sensors(a, true);
}

static int run_collect(const arguments *a)
{
    if (a->operand_count == 0)
        program_fail(PROGRAM_USAGE, "collect: missing SENSOR");
    return gather_sensors(a, false);
}

/* The functions that run the commands, in the same order as `commands`. */
static int (*const runs[])(const arguments *a) = {
    run_list,  run_status, run_settings,  run_query, run_subscribe,
    run_start, run_stop,   run_summaries, run_find,  run_collect,
};

int main(int argc, char **argv)
{
    program_start("nlagent");
    static arguments a = {.since_ns = INT64_MIN};
    int first = options_parse(&usage, argc, argv, &a);
    if (nl_environment_value("NLAGENT") != NULL && a.ask.agent_count > 1) { /* options override the environment */
        a.ask.agents++;
        a.ask.agent_count--;
    }
    if (!agents_options_finish(&a.ask))
        program_fail(PROGRAM_USAGE, "--token-file: %s", nl_error_message());
    signal(SIGPIPE, SIG_IGN);
    size_t command = 0;
    while (strcmp(commands[command].name, argv[first]) != 0) /* options_parse has checked the command */
        command++;
    a.operands = argv + first + 1;
    a.operand_count = argc - first - 1;
    int status = runs[command](&a);
    xmlCleanupParser();
    return program_finish(status);
}
