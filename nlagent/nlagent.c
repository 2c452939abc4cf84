/* nlagent: asks agents (nlagentd) for what their sensors say, and directories for where they are. */
#include "config.h"

#include "agents/directory.h"
#include "base/error.h"
#include "base/environment_value.h"
#include "base/monotonic.h"
#include "agents/gather.h"
#include "agents/find.h"
#include "program/program.h"
#include "transport/writer.h"
#include "base/time_internal.h"

#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    AGENTS_MAX = 4096,
    WISHES_MAX = 16, /* each has a name and a value */
    LOOK_UP_S = 15
};

typedef struct arguments {
    const char *agents[AGENTS_MAX + 1];
    size_t agent_count;
    const char *directory, *hosts, *output, *dest, *with, *token_file;
    agents_options ask;
    const char *wishes[WISHES_MAX + 1]; /* of Subscribe: name, value, ... */
    size_t wish_count;
    int64_t since_ns; /* INT64_MIN: not given */
    bool details;
    int64_t duration_ns; /* 0: endless */
    char **operands;
    int operand_count;
    char token[AGENTS_TOKEN_SIZE];
} arguments;

/* Of an option that is there twice the last holds, as of all others. */
static void add_wish(arguments *a, const char *name, const char *value)
{
    size_t i = 0;
    while (i < a->wish_count && strcmp(a->wishes[i], name) != 0)
        i += 2;
    if (i == a->wish_count)
        a->wish_count += 2;
    a->wishes[i] = name;
    a->wishes[i + 1] = value;
}

static bool add_agent(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    if (a->agent_count == AGENTS_MAX) {
        return nl_error_false(NL_ERROR_INVALID, "more than the maximum, %d", AGENTS_MAX);
    }
    a->agents[a->agent_count++] = value;
    return true;
}

/* Options that are passed on to the agent under their own names. */
static bool set_wish(void *settings, const nl_option *row, const char *value)
{
    add_wish(settings, row->name, row->type == NL_OPTION_FLAG ? "true" : value);
    return true;
}

/* Agents take seconds. */
static bool set_interval(void *settings, const nl_option *row, const char *value)
{
    static char seconds[32];
    int64_t interval_ns = 0;
    nl_option plain = *row;
    plain.set = NULL;
    plain.offset = 0;
    plain.size = sizeof interval_ns;
    if (!nl_option_set(&plain, &interval_ns, value))
        return false;
    snprintf(seconds, sizeof seconds, "%.9g", (double)interval_ns / 1e9);
    add_wish(settings, row->name, seconds);
    return true;
}

/* Agents take minutes. */
static bool set_summary(void *settings, const nl_option *row, const char *value)
{
    static const char *const minutes[] = {"1", "10", "60"};
    unsigned choice = 0;
    nl_option plain = *row;
    plain.set = NULL;
    plain.offset = 0;
    plain.size = sizeof choice;
    if (!nl_option_set(&plain, &choice, value))
        return false;
    add_wish(settings, row->name, minutes[choice]);
    return true;
}

static const nl_option options[] = {
    {.name = "agent",
     .letter = 'a',
     .value = "URL",
     .initial = "(http://127.0.0.1:14831)",
     .environment = "NLAGENT",
     .repeatable = true,
     .set = add_agent,
     .help = "Agent to query: http://HOST[:PORT] or https://HOST[:PORT]; collect accepts several"},
    {.name = "directory",
     .value = "URL",
     .initial = "(the agent)",
     .environment = "NLAGENT_DIRECTORY",
     NL_OPTION_MEMBER(arguments, directory),
     .help = "Directory in which to find agents: an agent with --directory, or ldap://HOST"},
    {.name = "hosts",
     .value = "EXPRESSION",
     .commands = "collect",
     NL_OPTION_MEMBER(arguments, hosts),
     .help = "Query the agents whose directory entries match EXPRESSION: 'host=dpss*'"},
    {0},
};

static const nl_option sensor_options[] = {
    {.name = "interval",
     .letter = 'i',
     .type = NL_OPTION_DURATION,
     .initial = "(1s)",
     .minimum = 1000000,
     .maximum = 86400 * NL_NS_PER_SECOND,
     .commands = "query subscribe start collect",
     .set = set_interval,
     .help = "Interval between a sensor's measurements"},
    {.name = "where",
     .value = "EXPRESSION",
     .commands = "query subscribe start collect",
     .set = set_wish,
     .help = "Send only records that match EXPRESSION"},
    {.name = "field",
     .value = "NAME",
     .commands = "query subscribe start collect",
     .set = set_wish,
     .help = "Field that --change, --above, --below and --percent examine"},
    {.name = "change",
     .type = NL_OPTION_FLAG,
     .commands = "query subscribe start collect",
     .set = set_wish,
     .help = "Send a record only when the value changes"},
    {.name = "above",
     .value = "N",
     .commands = "query subscribe start collect",
     .set = set_wish,
     .help = "Send a record only when the value rises above N, or falls below the value of --below"},
    {.name = "below",
     .value = "N",
     .initial = "(the value of --above)",
     .commands = "query subscribe start collect",
     .set = set_wish,
     .help = "Lower threshold of --above"},
    {.name = "percent",
     .value = "N",
     .commands = "query subscribe start collect",
     .set = set_wish,
     .help = "Send a record only when the value differs by more than N percent from the last one sent"},
    {.name = "summary",
     .type = NL_OPTION_CHOICE,
     .choices = "1m|10m|1h",
     .commands = "query subscribe start collect summaries",
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
    {.name = "duration",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     .commands = "subscribe collect",
     NL_OPTION_MEMBER(arguments, duration_ns),
     .help = "Stop after DURATION"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "-",
     .commands = "subscribe collect",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write records to FILE; - is standard output"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     .commands = "collect",
     NL_OPTION_MEMBER(arguments, dest),
     .help = "Send records to URL: a collector, x-netlog://HOST, or any other log URL"},
    {.name = "with",
     .value = "URL",
     .commands = "collect",
     NL_OPTION_MEMBER(arguments, with),
     .help = "Also collect the records that this collector receives: x-netlog://HOST"},
    {.name = "details",
     .type = NL_OPTION_FLAG,
     .commands = "list",
     NL_OPTION_MEMBER(arguments, details),
     .help = "Also list the events and fields of each sensor"},
    {0},
};

static const nl_option security_options[] = {
    {.name = "ca",
     .value = "FILE",
     .environment = "NLAGENT_CA",
     NL_OPTION_MEMBER(arguments, ask.client.ca),
     .help = "CA certificate for verifying https agents"},
    {.name = "cert",
     .value = "FILE",
     .environment = "NLAGENT_CERT",
     NL_OPTION_MEMBER(arguments, ask.client.cert),
     .help = "Client certificate for https"},
    {.name = "key",
     .value = "FILE",
     .environment = "NLAGENT_KEY",
     NL_OPTION_MEMBER(arguments, ask.client.key),
     .help = "Private key of the client certificate"},
    {.name = "token-file",
     .value = "FILE",
     .environment = "NLAGENT_TOKEN_FILE",
     NL_OPTION_MEMBER(arguments, token_file),
     .help = "Send the token in the first line of FILE to the agent"},
    {.name = "ldap-base",
     .value = "DN",
     .environment = "NLAGENT_LDAP_BASE",
     NL_OPTION_MEMBER(arguments, ask.ldap.base),
     .help = "LDAP entry below which agents are registered"},
    {.name = "ldap-bind",
     .value = "DN",
     .environment = "NLAGENT_LDAP_BIND",
     NL_OPTION_MEMBER(arguments, ask.ldap.bind_dn),
     .help = "LDAP name for binding"},
    {.name = "ldap-password",
     .value = "FILE",
     .environment = "NLAGENT_LDAP_PASSWORD",
     NL_OPTION_MEMBER(arguments, ask.ldap.password_file),
     .help = "Read the LDAP password from the first line of FILE"},
    {0},
};

static const options_command commands[] = {
    {"list", NULL, "List the available and the running sensors of the agent"},
    {"status", NULL, "Print the agent's state"},
    {"settings", NULL, "Print the value of every setting of the agent"},
    {"query", "SENSOR", "Print the current measurement of the sensor"},
    {"subscribe", "SENSOR", "Print the measurement of each interval, until SIGINT"},
    {"start", "SENSOR", "Start a sensor that runs without a subscriber"},
    {"stop", "SENSOR", "Stop a sensor that start started"},
    {"summaries", "SENSOR", "Print the minimum, mean, maximum and percentiles of the last day"},
    {"find", "[EXPRESSION]", "Find agents and sensors: 'sensor=tcp & host=dpss*'"},
    {"collect", "SENSOR...", "Send the measurements of several agents' sensors to one file or collector"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Which records", sensor_options, 0},
                                      {"Output", output_options, 0},
                                      {"Security and LDAP", security_options, 0},
                                      {0}},
    .commands = commands,
    .summary = "Query agents for the data of sensors, and directories for agents.",
    .notes = "A SENSOR is a name, and its arguments if it needs any: cpu, 'ping?host=dpss1&count=3'",
};

/* ---- asking ---- */

static const char *first_agent(const arguments *a)
{
    return a->agent_count > 0 ? a->agents[0] : AGENTS_DEFAULT_URL;
}

static const char *directory_url(const arguments *a)
{
    return a->directory != NULL ? a->directory : first_agent(a);
}

/* Asks; ends the program when that fails. */
static void nlagent_ask(const arguments *a, const char *url, nl_buffer *message, soap_call *answer)
{
    client *c = client_new(url, &a->ask.client);
    if (c == NULL)
        program_fail(PROGRAM_USAGE, "%s", nl_error_message());
    if (!client_call(c, message, answer))
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    client_free(c);
    nl_buffer_free(message);
}

static int print_records(const soap_call *answer)
{
    if (answer->records.size > 0)
        fwrite(answer->records.data, 1, answer->records.size, stdout);
    return PROGRAM_DONE;
}

static int ask_about_sensor(const arguments *a, const char *operation, bool with_wishes)
{
    nl_buffer message = {0};
    soap_call answer;
    soap_begin(&message, operation);
    if (a->operand_count != 2)
        program_fail(PROGRAM_USAGE, "%s: missing SENSOR", a->operands[0]);
    soap_put(&message, "sensor", a->operands[1]);
    for (size_t i = 0; i < a->wish_count && with_wishes; i += 2)
        soap_put(&message, a->wishes[i], a->wishes[i + 1]);
    for (size_t i = 0; i < a->wish_count && !with_wishes; i += 2)
        if (strcmp(a->wishes[i], "summary") == 0)
            soap_put(&message, "minutes", a->wishes[i + 1]);
    if (a->since_ns != INT64_MIN) {
        char since[NL_TIME_TEXT_SIZE];
        nl_time_format_iso(a->since_ns, since);
        soap_put(&message, "since", since);
    }
    soap_end(&message, operation);
    nlagent_ask(a, first_agent(a), &message, &answer);
    int status = print_records(&answer);
    soap_call_free(&answer);
    return status;
}

static int do_list(const arguments *a)
{
    nl_buffer message = {0};
    soap_call answer;
    soap_begin(&message, "List");
    soap_put(&message, "details", a->details ? "true" : "false");
    soap_end(&message, "List");
    nlagent_ask(a, first_agent(a), &message, &answer);
    for (size_t i = 0; i < answer.count; i++) {
        const char *name = answer.arguments[i].name, *value = answer.text.data + answer.arguments[i].value;
        if (strcmp(name, "sensor.name") == 0)
            printf("%s", value);
        else if (strcmp(name, "sensor.what") == 0)
            printf("\n    %s\n", value);
        else if (strcmp(name, "sensor.arguments") == 0 && *value != '\0')
            printf("    %s\n", value);
        else if (strcmp(name, "sensor.instance.sensor") == 0)
            printf("    * %s", value);
        else if (strncmp(name, "sensor.instance.", 16) == 0)
            printf(" %s=%s%s", name + 16, value,
                   i + 1 == answer.count || strncmp(answer.arguments[i + 1].name, "sensor.instance.", 16) != 0 ? "\n"
                                                                                                               : "");
        else if (strncmp(name, "sensor.field.", 13) == 0)
            printf("%s%s%s", strcmp(name + 13, "event") == 0 ? "        " : " ", value,
                   strcmp(name + 13, "meaning") == 0 ? "\n" : "");
    }
    soap_call_free(&answer);
    return PROGRAM_DONE;
}

static int ask_about_agent(const arguments *a, const char *operation)
{
    nl_buffer message = {0};
    soap_call answer;
    soap_begin(&message, operation);
    soap_end(&message, operation);
    nlagent_ask(a, first_agent(a), &message, &answer);
    int status = print_records(&answer);
    soap_call_free(&answer);
    return status;
}

/* ---- looking up ---- */

static bool look_up(const arguments *a, const char *expression, agents_found_function *function, void *user)
{
    return agents_find_sensors(&a->ask, directory_url(a), expression, function, user);
}

static void print_found(void *user, const char *host, const char *url, const char *sensor, const char *events)
{
    ++*(size_t *)user;
    printf("%s\t%s\t%s\t%s\n", host, url, sensor, events);
}

static int do_find(const arguments *a)
{
    size_t count = 0;
    if (a->operand_count > 2)
        program_fail(PROGRAM_USAGE, "find: too many arguments; quote the EXPRESSION");
    if (!look_up(a, a->operand_count == 2 ? a->operands[1] : "", print_found, &count))
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    if (count == 0)
        program_error("nothing of the kind is registered");
    return count > 0 ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* ---- subscribing ---- */

/* Where records go. */
typedef struct sink {
    nl_writer *writer;
    nl_log *log;
} sink;

static bool nlagent_put(void *user, const nl_record *record)
{
    sink *s = user;
    nl_status status = s->log != NULL ? nl_write_record(s->log, record) : nl_writer_put(s->writer, record);
    if (status >= NL_OK && s->writer != NULL)
        status = nl_writer_flush(s->writer);
    if (status < NL_OK)
        program_error("%s", nl_error_message());
    return status >= NL_OK;
}

static void open_sink(const arguments *a, sink *s)
{
    if (a->dest != NULL && (s->log = nl_open("nlagent", a->dest)) == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    if (a->dest == NULL && (s->writer = nl_writer_open(a->output, NULL)) == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
}

static bool close_sink(sink *s)
{
    bool good = s->log == NULL || nl_close(s->log) == NL_OK;
    good = (s->writer == NULL || nl_writer_close(s->writer) == NL_OK) && good;
    if (!good)
        program_error("%s", nl_error_message());
    return good;
}

static void add_found(void *user, const char *host, const char *url, const char *sensor, const char *events)
{
    (void)host, (void)sensor, (void)events;
    if (!gather_add(user, url))
        program_error("%s", nl_error_message());
}

/* Until a signal, the time's end, or that of what is gathered. Agents that come later are taken in. */
static int wait_for_end(const arguments *a, gathering *all)
{
    int64_t begun_ns = nl_monotonic_ns(), now_ns = begun_ns, looked_up_ns = begun_ns;
    while (!program_was_stopped() && !gather_is_over(all) &&
           (a->duration_ns == 0 || now_ns - begun_ns < a->duration_ns)) {
        usleep(50000);
        now_ns = nl_monotonic_ns();
        if (a->hosts != NULL && now_ns - looked_up_ns >= LOOK_UP_S * NL_NS_PER_SECOND) {
            looked_up_ns = now_ns;
            look_up(a, a->hosts, add_found, all); /* a directory that is away now comes back */
        }
    }
    bool over = gather_is_over(all);
    if (over && nl_error_get_code() != NL_ERROR_NONE)
        program_error("%s", nl_error_message());
    return over ? PROGRAM_PROBLEM : PROGRAM_DONE;
}

static int gather(const arguments *a, bool many)
{
    sink s = {0};
    gather_options o = {.client = a->ask.client,
                        .sensors = a->operands + 1,
                        .arguments = a->wishes,
                        .put = nlagent_put,
                        .user = &s,
                        .once = !many};
    if (a->operand_count < 2 || (!many && a->operand_count > 2))
        program_fail(PROGRAM_USAGE, "%s: needs %s SENSOR", a->operands[0], many ? "at least one" : "one");
    open_sink(a, &s);
    program_catch_signals();
    gathering *all = gather_new(&o);
    bool good = true;
    if (many && a->hosts != NULL)
        good = look_up(a, a->hosts, add_found, all);
    for (size_t i = 0; i < a->agent_count && good; i++)
        good = gather_add(all, a->agents[i]);
    if (good && a->agent_count == 0 && (!many || a->hosts == NULL))
        good = gather_add(all, first_agent(a));
    if (good && many && a->with != NULL)
        good = gather_add_collector(all, a->with);
    int status = PROGRAM_PROBLEM;
    if (!good)
        program_error("%s", nl_error_message());
    else
        status = wait_for_end(a, all);
    gather_free(all);
    return close_sink(&s) ? status : PROGRAM_PROBLEM;
}

/* ---- all of it ---- */

static int nlagent_run(const arguments *a)
{
    const char *verb = a->operands[0];
    if (strcmp(verb, "list") == 0)
        return do_list(a);
    if (strcmp(verb, "status") == 0)
        return ask_about_agent(a, "Status");
    if (strcmp(verb, "settings") == 0)
        return ask_about_agent(a, "Settings");
    if (strcmp(verb, "query") == 0)
        return ask_about_sensor(a, "Query", true);
    if (strcmp(verb, "start") == 0)
        return ask_about_sensor(a, "Start", true);
    if (strcmp(verb, "stop") == 0)
        return ask_about_sensor(a, "Stop", false);
    if (strcmp(verb, "summaries") == 0)
        return ask_about_sensor(a, "Summaries", false);
    if (strcmp(verb, "find") == 0)
        return do_find(a);
    if (strcmp(verb, "subscribe") == 0)
        return gather(a, false);
    return gather(a, true); /* collect */
}

int main(int argc, char **argv)
{
    program_start("nlagent");
    static arguments a = {.since_ns = INT64_MIN};
    const char *named = nl_environment_value("NLAGENT");
    int first = options_parse(&usage, argc, argv, &a);
    a.operands = argv + first;
    a.operand_count = argc - first;
    if (named != NULL && a.agent_count > 1) { /* options replace it */
        memmove(a.agents, a.agents + 1, (size_t)--a.agent_count * sizeof *a.agents);
        a.agents[a.agent_count] = NULL;
    }
    if (a.token_file != NULL) {
        if (!agents_read_token(a.token_file, a.token))
            program_fail(PROGRAM_USAGE, "--token-file: %s", nl_error_message());
        a.ask.client.token = a.token;
    }
    signal(SIGPIPE, SIG_IGN);
    xmlInitParser();
    int status = nlagent_run(&a);
    xmlCleanupParser();
    return program_finish(status);
}
