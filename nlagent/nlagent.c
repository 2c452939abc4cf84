/* nlagent: asks agents (nlagentd) for what their sensors say, and directories for where they are. */
#include "config.h"

#include "agent/directory.h"
#include "base/monotonic.h"
#include "client/client.h"
#include "client/gather.h"
#include "client/ldap_directory.h"
#include "program/program.h"
#include "transport/writer.h"

#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_AGENT "http://127.0.0.1:14831"

enum {
    OPTION_DIRECTORY = 0x1000,
    OPTION_HOSTS,
    OPTION_TO,
    OPTION_WITH,
    OPTION_CA,
    OPTION_CERT,
    OPTION_KEY,
    OPTION_TOKEN_FILE,
    OPTION_WHERE,
    OPTION_FIELD,
    OPTION_CHANGE,
    OPTION_ABOVE,
    OPTION_BELOW,
    OPTION_PERCENT,
    OPTION_SUMMARY,
    OPTION_MINUTES,
    OPTION_SINCE,
    OPTION_DETAILS,
    OPTION_LDAP_BASE,
    OPTION_LDAP_BIND,
    OPTION_LDAP_PASSWORD,
    AGENTS_MOST = 4096,
    WISHES_MOST = 16, /* each has a name and a value */
    LOOK_UP_S = 15
};

typedef struct arguments {
    const char *agents[AGENTS_MOST + 1];
    size_t agent_count;
    const char *directory, *hosts, *output, *to, *with, *token_file;
    client_options client;
    ldap_options ldap;
    const char *wishes[WISHES_MOST + 1]; /* of Subscribe: name, value, ... */
    size_t wish_count;
    const char *minutes, *since;
    bool details;
    double seconds; /* 0: for ever */
    char **words;
    int word_count;
    char token[300];
} arguments;

static const struct argp_option options[] = {
    {"agent", 'a', "URL", 0,
     "The agent to ask: http://HOST[:PORT], https://...; for collect again and again (default "
     "$NLAGENT, or " DEFAULT_AGENT ")",
     1},
    {"directory", OPTION_DIRECTORY, "URL", 0,
     "Where to look agents up: an agent that is a directory, or ldap://HOST (default $NLAGENT_DIRECTORY, or the agent)",
     1},
    {"hosts", OPTION_HOSTS, "EXPRESSION", 0, "collect: of agents that the directory finds so: 'host=dpss*'", 1},
    {"interval", 'i', "SECONDS", 0, "How often sensors look (default 1)", 2},
    {"where", OPTION_WHERE, "EXPRESSION", 0, "Only records that it is true of", 2},
    {"field", OPTION_FIELD, "NAME", 0, "The field that the next four are about", 2},
    {"change", OPTION_CHANGE, NULL, 0, "Only when it is another than before", 2},
    {"above", OPTION_ABOVE, "N", 0, "Only when it rises above N, or falls below what --below says", 2},
    {"below", OPTION_BELOW, "N", 0, "See --above (default the same)", 2},
    {"percent", OPTION_PERCENT, "N", 0, "Only when it differs by more than N percent from what was sent last", 2},
    {"summary", OPTION_SUMMARY, "MINUTES", 0, "Summaries of 1, 10 or 60 minutes instead", 2},
    {"seconds", 's', "N", 0, "subscribe, collect: end after N seconds", 3},
    {"output", 'o', "FILE", 0, "subscribe, collect: write records there (default: standard output)", 3},
    {"to", OPTION_TO, "URL", 0,
     "collect: log records to that collector: x-netlog://HOST and whatever a log's URL may "
     "be",
     3},
    {"with", OPTION_WITH, "URL", 0, "collect: together with what that collector takes: x-netlog://HOST", 3},
    {"minutes", OPTION_MINUTES, "N", 0, "summaries: of 1, 10 or 60 minutes (default 1)", 3},
    {"since", OPTION_SINCE, "TIME", 0, "summaries: that begin at that time or later", 3},
    {"details", OPTION_DETAILS, NULL, 0, "list: the events and fields of each sensor too", 3},
    {"ca", OPTION_CA, "FILE", 0, "Who vouches for agents, of https", 4},
    {"cert", OPTION_CERT, "FILE", 0, "The certificate to show, of https", 4},
    {"key", OPTION_KEY, "FILE", 0, "Its key", 4},
    {"token-file", OPTION_TOKEN_FILE, "FILE", 0, "The token to show: the first line of FILE", 4},
    {"ldap-base", OPTION_LDAP_BASE, "DN", 0, "Of LDAP: below which entry agents are", 4},
    {"ldap-bind", OPTION_LDAP_BIND, "DN", 0, "Of LDAP: as whom", 4},
    {"ldap-password", OPTION_LDAP_PASSWORD, "FILE", 0, "Of LDAP: the password, the first line of FILE", 4},
    {0},
};

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

static void read_token(arguments *a, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(a->token, sizeof a->token, file) == NULL)
        program_fail(PROGRAM_USAGE, "--token-file %s: it cannot be read", path);
    fclose(file);
    a->token[strcspn(a->token, "\r\n")] = '\0';
    a->client.token = a->token;
}

/* Options whose argument is only kept; NULL for others. */
static const char **place_of(arguments *a, int key)
{
    switch (key) {
    case OPTION_DIRECTORY:
        return &a->directory;
    case OPTION_HOSTS:
        return &a->hosts;
    case OPTION_TOKEN_FILE:
        return &a->token_file;
    case OPTION_TO:
        return &a->to;
    case OPTION_WITH:
        return &a->with;
    case 'o':
        return &a->output;
    case OPTION_CA:
        return &a->client.ca;
    case OPTION_CERT:
        return &a->client.cert;
    case OPTION_KEY:
        return &a->client.key;
    case OPTION_MINUTES:
        return &a->minutes;
    case OPTION_SINCE:
        return &a->since;
    case OPTION_LDAP_BASE:
        return &a->ldap.base;
    case OPTION_LDAP_BIND:
        return &a->ldap.bind_dn;
    case OPTION_LDAP_PASSWORD:
        return &a->ldap.password_file;
    default:
        return NULL;
    }
}

/* Options that are passed on to the agent; NULL for others. */
static const char *wish_of(int key)
{
    static const struct {
        int key;
        const char *name;
    } known[] = {{'i', "interval"},           {OPTION_WHERE, "where"},    {OPTION_FIELD, "field"},
                 {OPTION_CHANGE, "change"},   {OPTION_ABOVE, "above"},    {OPTION_BELOW, "below"},
                 {OPTION_PERCENT, "percent"}, {OPTION_SUMMARY, "summary"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].key == key)
            return known[i].name;
    return NULL;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    char *end;
    if (wish_of(key) != NULL) {
        add_wish(a, wish_of(key), argument != NULL ? argument : "true");
        return 0;
    }
    if (place_of(a, key) != NULL) {
        *place_of(a, key) = argument;
        return 0;
    }
    switch (key) {
    case 'a':
        if (a->agent_count == AGENTS_MOST)
            argp_error(state, "so many --agent are too many");
        a->agents[a->agent_count++] = argument;
        return 0;
    case 's':
        a->seconds = strtod(argument, &end);
        if (end == argument || *end != '\0' || !(a->seconds > 0))
            argp_error(state, "--seconds %s: a number above 0 is wanted", argument);
        return 0;
    case OPTION_DETAILS:
        a->details = true;
        return 0;
    case ARGP_KEY_ARGS:
        a->words = state->argv + state->next;
        a->word_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (a->word_count == 0)
            argp_error(state,
                       "what shall it do? list, query, subscribe, start, stop, summaries, status, find, collect");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "list|status\nquery|subscribe|start|stop|summaries SENSOR\nfind [EXPRESSION]\ncollect SENSOR...",
    .doc = "Ask agents for what sensors say, and directories for where agents are."
           "\v  list       which sensors the agent has, and which run\n"
           "  status     how the agent is\n"
           "  query      what the sensor sees now\n"
           "  subscribe  the same again and again, until SIGINT\n"
           "  start      has a sensor run without anybody who looks; stop ends that\n"
           "  summaries  least, mean, greatest and percentiles, of the last day\n"
           "  find       agents and sensors: 'sensor=tcp & host=dpss*'\n"
           "  collect    what the sensors of several agents say, into one file or collector\n\n"
           "A SENSOR is a name, perhaps with what it is to look at: cpu, 'ping?host=dpss1&count=3'"};

/* ---- asking ---- */

static const char *first_agent(const arguments *a)
{
    const char *said = getenv("NLAGENT");
    return a->agent_count > 0 ? a->agents[0] : said != NULL && *said != '\0' ? said : DEFAULT_AGENT;
}

static const char *directory_url(const arguments *a)
{
    const char *said = getenv("NLAGENT_DIRECTORY");
    return a->directory != NULL ? a->directory : said != NULL && *said != '\0' ? said : first_agent(a);
}

/* Asks; ends the program when that fails. */
static void ask(const arguments *a, const char *url, nl_buffer *message, soap_call *answer)
{
    char words[CLIENT_WORDS];
    client *c = client_new(url, &a->client, words);
    if (c == NULL)
        program_fail(PROGRAM_USAGE, "%s", words);
    if (!client_call(c, message, answer, words))
        program_fail(PROGRAM_PROBLEM, "%s", words);
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
    if (a->word_count != 2)
        program_fail(PROGRAM_USAGE, "%s: a sensor's name is wanted", a->words[0]);
    soap_put(&message, "sensor", a->words[1]);
    for (size_t i = 0; i < a->wish_count && with_wishes; i += 2)
        soap_put(&message, a->wishes[i], a->wishes[i + 1]);
    if (a->minutes != NULL)
        soap_put(&message, "minutes", a->minutes);
    if (a->since != NULL)
        soap_put(&message, "since", a->since);
    soap_end(&message, operation);
    ask(a, first_agent(a), &message, &answer);
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
    ask(a, first_agent(a), &message, &answer);
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

static int do_status(const arguments *a)
{
    nl_buffer message = {0};
    soap_call answer;
    soap_begin(&message, "Status");
    soap_end(&message, "Status");
    ask(a, first_agent(a), &message, &answer);
    int status = print_records(&answer);
    soap_call_free(&answer);
    return status;
}

/* ---- looking up ---- */

typedef void found_function(void *user, const char *host, const char *url, const char *sensor, const char *events);

/* Calls function for each sensor that an agent's directory finds. False with the reason in words. */
static bool find_at_agent(const arguments *a, const char *url, const char *expression, found_function *function,
                          void *user, char words[CLIENT_WORDS])
{
    nl_buffer message = {0};
    soap_call answer = {0};
    client *c = client_new(url, &a->client, words);
    if (c == NULL)
        return false;
    soap_begin(&message, "Find");
    soap_put(&message, "expression", expression);
    soap_end(&message, "Find");
    bool good = client_call(c, &message, &answer, words);
    const char *host = "", *agent = "", *sensor = "";
    for (size_t i = 0; i < answer.count && good; i++) {
        const char *name = answer.arguments[i].name, *value = answer.text.data + answer.arguments[i].value;
        if (strcmp(name, "agent.host") == 0)
            host = value;
        else if (strcmp(name, "agent.url") == 0)
            agent = value;
        else if (strcmp(name, "agent.sensor.name") == 0)
            sensor = value;
        else if (strcmp(name, "agent.sensor.events") == 0)
            function(user, host, agent, sensor, value);
    }
    soap_call_free(&answer);
    nl_buffer_free(&message);
    client_free(c);
    return good;
}

typedef struct found {
    found_function *function;
    void *user;
} found;

static void on_ldap(void *user, const char *host, const char *url, const directory_sensor *sensors, size_t count)
{
    const found *f = user;
    for (size_t i = 0; i < count; i++)
        f->function(f->user, host, url, sensors[i].name, sensors[i].events);
}

static bool look_up(const arguments *a, const char *expression, found_function *function, void *user,
                    char words[CLIENT_WORDS])
{
    const char *url = directory_url(a);
    ldap_options ldap = a->ldap;
    found f = {function, user};
    if (strncmp(url, "ldap", 4) != 0)
        return find_at_agent(a, url, expression, function, user, words);
    ldap.url = url;
    if (ldap.base == NULL)
        program_fail(PROGRAM_USAGE, "with ldap://, --ldap-base is wanted");
    return ldap_find(&ldap, expression, on_ldap, &f, words);
}

static void print_found(void *user, const char *host, const char *url, const char *sensor, const char *events)
{
    ++*(size_t *)user;
    printf("%s\t%s\t%s\t%s\n", host, url, sensor, events);
}

static int do_find(const arguments *a)
{
    char words[CLIENT_WORDS];
    size_t count = 0;
    if (a->word_count > 2)
        program_fail(PROGRAM_USAGE, "find: one expression is wanted, in quotes");
    if (!look_up(a, a->word_count == 2 ? a->words[1] : "", print_found, &count, words))
        program_fail(PROGRAM_PROBLEM, "%s", words);
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

static bool put(void *user, const nl_record *record)
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
    if (a->to != NULL && (s->log = nl_open("nlagent", a->to)) == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    if (a->to == NULL && (s->writer = nl_writer_open(a->output != NULL ? a->output : "-", NULL)) == NULL)
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
    char words[CLIENT_WORDS];
    if (!gather_add(user, url, words))
        program_error("%s", words);
}

/* Until a signal, the time's end, or that of what is gathered. Agents that come later are taken in. */
static int wait_for_end(const arguments *a, gathering *all)
{
    char words[CLIENT_WORDS];
    int64_t begun_ns = nl_monotonic_ns(), now_ns = begun_ns, looked_up_ns = begun_ns;
    while (!program_was_stopped() && !gather_is_over(all, words) &&
           (a->seconds == 0 || (double)(now_ns - begun_ns) < a->seconds * 1e9)) {
        usleep(50000);
        now_ns = nl_monotonic_ns();
        if (a->hosts != NULL && now_ns - looked_up_ns >= LOOK_UP_S * NL_NS_PER_SECOND) {
            looked_up_ns = now_ns;
            look_up(a, a->hosts, add_found, all, words); /* a directory that is away now comes back */
        }
    }
    bool over = gather_is_over(all, words);
    if (over && words[0] != '\0')
        program_error("%s", words);
    return over ? PROGRAM_PROBLEM : PROGRAM_DONE;
}

static int gather(const arguments *a, bool many)
{
    sink s = {0};
    char words[CLIENT_WORDS];
    gather_options o = {
        .client = a->client, .sensors = a->words + 1, .arguments = a->wishes, .put = put, .user = &s, .once = !many};
    if (a->word_count < 2 || (!many && a->word_count > 2))
        program_fail(PROGRAM_USAGE, "%s: %s is wanted", a->words[0], many ? "at least one sensor" : "a sensor");
    open_sink(a, &s);
    program_catch_signals();
    gathering *all = gather_new(&o);
    bool good = true;
    if (many && a->hosts != NULL)
        good = look_up(a, a->hosts, add_found, all, words);
    for (size_t i = 0; i < a->agent_count && good; i++)
        good = gather_add(all, a->agents[i], words);
    if (good && a->agent_count == 0 && (!many || a->hosts == NULL))
        good = gather_add(all, first_agent(a), words);
    if (good && many && a->with != NULL)
        good = gather_add_collector(all, a->with, words);
    int status = PROGRAM_PROBLEM;
    if (!good)
        program_error("%s", words);
    else
        status = wait_for_end(a, all);
    gather_free(all);
    return close_sink(&s) ? status : PROGRAM_PROBLEM;
}

/* ---- all of it ---- */

static int run(const arguments *a)
{
    const char *verb = a->words[0];
    if (strcmp(verb, "list") == 0)
        return do_list(a);
    if (strcmp(verb, "status") == 0)
        return do_status(a);
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
    if (strcmp(verb, "collect") == 0)
        return gather(a, true);
    program_fail(PROGRAM_USAGE, "what is \"%s\"? list, status, query, subscribe, start, stop, summaries, find, collect",
                 verb);
}

/* What the environment says holds unless an option says otherwise. */
static void take_environment(arguments *a, const char **token_file)
{
    const struct {
        const char *name, **place;
    } known[] = {{"NLAGENT_CA", &a->client.ca},
                 {"NLAGENT_CERT", &a->client.cert},
                 {"NLAGENT_KEY", &a->client.key},
                 {"NLAGENT_TOKEN_FILE", token_file},
                 {"NLAGENT_LDAP_BASE", &a->ldap.base},
                 {"NLAGENT_LDAP_BIND", &a->ldap.bind_dn},
                 {"NLAGENT_LDAP_PASSWORD", &a->ldap.password_file}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *said = getenv(known[i].name);
        if (said != NULL && *said != '\0')
            *known[i].place = said;
    }
}

int main(int argc, char **argv)
{
    program_start("nlagent", argv);
    static arguments a;
    take_environment(&a, &a.token_file);
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (a.token_file != NULL)
        read_token(&a, a.token_file);
    signal(SIGPIPE, SIG_IGN);
    xmlInitParser();
    int status = run(&a);
    xmlCleanupParser();
    return program_finish(status);
}
