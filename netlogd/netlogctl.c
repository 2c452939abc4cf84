/* netlogctl: prints the state of a running netlogd and sends it commands, over the control socket (doc/requests.md). */
#include "config.h"

#include "certificates.h"

#include "base/text.h"
#include "program/json_document.h"
#include "program/program.h"
#include "base/time_internal.h"
#include "base/error.h"
#include "base/memory.h"
#include "transport/destination.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { COLUMNS_MAX = 24, NAME_WIDTH = 14, TIMEOUT_SECONDS = 30 };

typedef struct arguments {
    const char *control; /* path of the control socket */
    const char *where, *since, *prog, *ca;
    bool json;
    char **operands;
    int word_count;
} arguments;

/* Checks the time. netlogctl sends the text of the option to netlogd unchanged. */
static bool set_since(void *settings, const nl_option *row, const char *value)
{
    int64_t time_ns;
    (void)row;
    ((arguments *)settings)->since = value;
    return nl_time_parse_relative(value, &time_ns) ||
           nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a time; use, for example, 2026-01-31T12:00:00, or -10m",
                          value);
}

static const nl_option options[] = {
    {.name = "control",
     .value = "unix:PATH",
     .initial = "unix:/run/netlogd/control",
     .environment = "NETLOGD_CONTROL",
     NL_OPTION_MEMBER(arguments, control),
     .help = "Control socket of netlogd; use the value of netlogd's option --control"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON; tail prints one object per line"},
    {.name = "where",
     .value = "EXPRESSION",
     .commands = "tail",
     NL_OPTION_MEMBER(arguments, where),
     .help = "Print only records that match EXPRESSION"},
    {.name = "since",
     .type = NL_OPTION_TIME,
     .commands = "tail",
     .set = set_since,
     .help = "Also print the records since TIME, which is absolute, or relative as in -10m"},
    {.name = "prog",
     .value = "GLOB",
     .commands = "tell",
     NL_OPTION_MEMBER(arguments, prog),
     .help = "Send the command only to programs whose name matches GLOB"},
    {.name = "ca",
     .value = "DIR",
     .commands = "certificates",
     NL_OPTION_MEMBER(arguments, ca),
     .help =
         "Directory of the certificate authority and its certificates; netlogctl creates the directory if necessary"},
    {0},
};

static const options_command commands[] = {
    {"status", NULL, "Print the uptime, the numbers of received and lost records, and the state of each output"},
    {"clients", NULL,
     "Print the clients that log, with the number of records, records per second and malformed records; also print "
     "the NATS streams and the followed files"},
    {"streams", NULL, "Print the numbered streams of programs that log in the binary format"},
    {"subscribers", NULL, "Print the subscribers, and the number of records that each subscriber missed"},
    {"clocks", NULL,
     "Print the error that each host reports for its clock, and the clock's offset from netlogd's clock"},
    {"drops", NULL,
     "For each reason, print how many records, datagrams, blocks, connections and requests netlogd rejected or did "
     "not deliver"},
    {"settings", NULL, "Print the settings that have a value, and the options of each output"},
    {"reload", NULL, "Read the configuration again, and reopen the outputs; same as SIGHUP"},
    {"tail", NULL, "Print new records as they arrive"},
    {"tell", "COMMAND",
     "Send a command (level Debug, marker PATTERN log, ...) to all current and future programs that log in the binary "
     "format. Programs keep the command, even if netlogd restarts, until \"tell ''\" revokes it"},
    {"certificates", "HOST...",
     "Create a certificate authority, and create or renew a TLS certificate for each HOST; name the collector first"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .commands = commands,
    .summary = "Print the state of a running netlogd, or send it a command.",
    .notes = "Example: netlogctl --control unix:/run/netlogd/control --prog 'dpss*' tell 'level Debug'",
};

/* ---- requests ---- */

static void fail_to_connect(const char *path, int error)
{
    program_fail(PROGRAM_PROBLEM, "connect to %s: %s%s", path, strerror(error),
                 error == ENOENT || error == ECONNREFUSED
                     ? "; start netlogd with --control unix:PATH, and netlogctl with the same option"
                 : error == EACCES ? "; run netlogctl as netlogd's user"
                                   : "");
}

static int connect_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path)
        program_fail(PROGRAM_USAGE, "%s: the path of the socket is too long", path);
    memcpy(address.sun_path, path, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail_to_connect(path, errno);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return fd;
}

/* Appends NAME="value", with the quoting of ULM. */
static void add_value(nl_buffer *line, const char *name, const char *value)
{
    nl_buffer_append(line, " ", 1);
    nl_buffer_append_text(line, name);
    nl_buffer_append(line, "=\"", 2);
    for (; *value != '\0'; value++) {
        unsigned char byte = (unsigned char)*value;
        char escape[5] = {(char)byte};
        if (byte < ' ' || byte == 127)
            snprintf(escape, sizeof escape, "\\x%02x", byte);
        else if (byte == '"' || byte == '\\')
            snprintf(escape, sizeof escape, "\\%c", byte);
        nl_buffer_append_text(line, escape);
    }
    nl_buffer_append(line, "\"", 1);
}

static void send_request(int fd, const arguments *a)
{
    nl_buffer line = {0};
    nl_buffer_append(&line, "NETLOGGER/1 ", 12);
    nl_buffer_append_text(&line, a->operands[0]);
    if (a->word_count > 1)
        add_value(&line, "COMMAND", a->operands[1]);
    if (a->prog != NULL)
        add_value(&line, "PROG", a->prog);
    nl_buffer_append(&line, "\n", 1);
    if (send(fd, line.data, line.size, MSG_NOSIGNAL) != (ssize_t)line.size)
        program_fail(PROGRAM_PROBLEM, "cannot send the request: %s", strerror(errno));
    nl_buffer_free(&line);
}

typedef struct answer {
    nl_record **records;
    size_t count;
    bool done; /* the last record has arrived */
} answer;

static void take_record(answer *all, const nl_record *record)
{
    nl_field reason;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (nl_string_is(record->event, "Netlogd.Error")) {
        nl_string text = {"the request failed", strlen("the request failed")};
        if (nl_record_find(record, "REASON", &reason))
            text = nl_field_text(&reason, scratch);
        program_fail(PROGRAM_PROBLEM, "netlogd: %.*s", (int)text.size, text.data);
    }
    if (nl_string_is(record->event, "Netlogd.Done")) {
        all->done = true;
        return;
    }
    all->records = nl_memory_check(realloc(all->records, (all->count + 1) * sizeof(nl_record *)));
    all->records[all->count] = nl_record_new();
    nl_record_copy(all->records[all->count++], record);
}

static answer read_answer(int fd)
{
    answer all = {0};
    nl_decoder *decoder = nl_decoder_new(NULL);
    static char bytes[64 << 10];
    ssize_t got;
    while (!all.done && (got = read(fd, bytes, sizeof bytes)) > 0) {
        const nl_record *record;
        nl_decoder_feed(decoder, bytes, (size_t)got);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            take_record(&all, record);
    }
    nl_decoder_free(decoder);
    if (!all.done)
        program_fail(PROGRAM_PROBLEM, "netlogd's reply is incomplete; is netlogd still running?");
    return all;
}

/* ---- printing ---- */

/* Prints text. Replaces control characters with "?", because clients choose the names of programs and hosts. */
static void print_text(nl_string text)
{
    char *copy = program_format("%.*s", (int)text.size, text.data != NULL ? text.data : "");
    program_replace_controls(copy, strlen(copy));
    fputs(copy, stdout);
    free(copy);
}

static void print_json(json_object *document, bool indented)
{
    puts(json_document_text(document, indented));
    json_object_put(document);
}

/* Returns whether text is a JSON number without an exponent. */
static bool is_number(const char *text)
{
    text += *text == '-';
    size_t digits = strspn(text, "0123456789"), fraction = 0;
    if (digits == 0 || (text[0] == '0' && digits > 1))
        return false;
    if (text[digits] == '.' && (fraction = strspn(text + digits + 1, "0123456789")) > 0)
        digits += 1 + fraction;
    return text[digits] == '\0';
}

static void add_member(json_object *object, nl_string name, nl_string value)
{
    char *key = program_format("%.*s", (int)name.size, name.data),
         *text = program_format("%.*s", (int)value.size, value.data);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        json_add_bool(object, key, *text == 't');
    else if (is_number(text))
        json_object_object_add(object, key, json_object_new_double_s(strtod(text, NULL), text));
    else
        json_add_text(object, key, text);
    free(key);
    free(text);
}

static void add_fields(json_object *object, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    for (size_t i = 0; i < record->field_count; i++)
        add_member(object, record->fields[i].name, nl_field_text(&record->fields[i], scratch));
}

static json_object *json_of_record(const nl_record *record)
{
    json_object *object = json_object_new_object();
    add_fields(object, record);
    return object;
}

static json_object *json_of_records(const answer *all, size_t from)
{
    json_object *array = json_object_new_array();
    for (size_t i = from; i < all->count; i++)
        json_object_array_add(array, json_of_record(all->records[i]));
    return array;
}

/* Prints a reply. If `one` is true, the first record is the result, and the others describe outputs. */
static void print_json_answer(const answer *all, bool one)
{
    json_object *document = one && all->count > 0 ? json_of_record(all->records[0]) : json_of_records(all, 0);
    if (one && all->count > 1)
        json_object_object_add(document, "OUTPUTS", json_of_records(all, 1));
    print_json(document, true);
}

static void print_lines(const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    for (size_t i = 0; i < record->field_count; i++) {
        nl_string name = record->fields[i].name;
        for (size_t k = 0; k < name.size; k++)
            putchar(tolower((unsigned char)name.data[k]));
        printf("%*s  ", name.size < NAME_WIDTH ? (int)(NAME_WIDTH - name.size) : 0, "");
        print_text(nl_field_text(&record->fields[i], scratch));
        putchar('\n');
    }
}

static nl_string find_cell(const nl_record *record, nl_string name, char scratch[NL_FIELD_TEXT_SIZE])
{
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (field->name.size == name.size && memcmp(field->name.data, name.data, name.size) == 0)
            return nl_field_text(field, scratch);
    }
    return (nl_string){"-", 1};
}

/* Finds the columns, which are the fields of all records. Returns their number. */
static size_t find_columns(const answer *all, nl_string columns[COLUMNS_MAX])
{
    size_t count = 0;
    for (size_t r = 0; r < all->count; r++)
        for (size_t i = 0; i < all->records[r]->field_count; i++) {
            nl_string name = all->records[r]->fields[i].name;
            size_t c = 0;
            while (c < count && (columns[c].size != name.size || memcmp(columns[c].data, name.data, name.size) != 0))
                c++;
            if (c == count && count < COLUMNS_MAX)
                columns[count++] = name;
        }
    return count;
}

static void print_table(const answer *all)
{
    nl_string columns[COLUMNS_MAX];
    size_t widths[COLUMNS_MAX];
    char scratch[NL_FIELD_TEXT_SIZE];
    size_t count = find_columns(all, columns);
    for (size_t c = 0; c < count; c++) {
        widths[c] = columns[c].size;
        for (size_t r = 0; r < all->count; r++) {
            size_t width = find_cell(all->records[r], columns[c], scratch).size;
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    for (size_t r = 0; r <= all->count && count > 0; r++) {
        for (size_t c = 0; c < count; c++) {
            nl_string text = r == 0 ? columns[c] : find_cell(all->records[r - 1], columns[c], scratch);
            print_text(text);
            printf("%*s", c + 1 < count ? (int)(widths[c] - text.size + 2) : 0, "");
        }
        putchar('\n');
    }
}

/* Prints the first record, and then a table of the other records. */
static void print_one(const answer *all)
{
    print_lines(all->records[0]);
    if (all->count > 1) {
        putchar('\n');
        print_table(&(answer){.records = all->records + 1, .count = all->count - 1});
    }
}

/* ---- tail ---- */

static void add_option(nl_buffer *url, const char *name, const char *value)
{
    if (value == NULL)
        return;
    nl_buffer_append(url, memchr(url->data, '?', url->size) != NULL ? "&" : "?", 1);
    nl_buffer_append_text(url, name);
    nl_url_append_escaped(url, value);
}

static void print_json_record(const nl_record *record)
{
    char date[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(record->time_ns, date);
    const struct {
        const char *name;
        nl_string value;
    } members[] = {{"ts", {date, strlen(date)}},
                   {"host", record->host},
                   {"prog", record->prog},
                   {"level", record->level_text},
                   {"event", record->event}};
    json_object *object = json_object_new_object();
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (members[i].value.data != NULL)
            add_member(object, nl_string_of(members[i].name), members[i].value);
    add_fields(object, record);
    print_json(object, false);
}

static int tail(const arguments *a)
{
    nl_buffer url = {0};
    char *base = a->control[0] == '/' ? strdup(a->control) : realpath(a->control, NULL);
    if (base == NULL)
        fail_to_connect(a->control, errno);
    nl_buffer_append(&url, "unix:", 5);
    nl_url_append_escaped(&url, base);
    add_option(&url, "where=", a->where);
    add_option(&url, "since=", a->since);
    nl_buffer_append(&url, "", 1);
    free(base);
    nl_reader *reader = nl_reader_open(url.data, NULL);
    nl_buffer_free(&url);
    if (reader == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    setvbuf(stdout, NULL, _IOLBF, 0); /* print each record as soon as it arrives */
    const nl_record *record;
    nl_buffer line = {0};
    nl_status status;
    while ((status = nl_reader_next(reader, &record)) == NL_OK && !ferror(stdout)) {
        line.size = 0;
        if (a->json)
            print_json_record(record);
        else
            nl_record_encode(record, NL_FORMAT_ULM, &line);
        if (line.size > 0)
            fwrite(line.data, 1, line.size, stdout);
    }
    if (status == NL_FAILED)
        program_print_error();
    nl_buffer_free(&line);
    nl_reader_close(reader);
    return status == NL_FAILED ? PROGRAM_PROBLEM : PROGRAM_DONE;
}

int main(int argc, char **argv)
{
    program_start("netlogctl");
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    a.operands = argv + first;
    a.word_count = argc - first;
    a.control += strncmp(a.control, "unix:", 5) == 0 ? 5 : 0;
    const char *verb = a.operands[0];
    bool is_tell = strcmp(verb, "tell") == 0, is_tail = strcmp(verb, "tail") == 0;
    if (is_tell && a.word_count == 1)
        options_fail("tell: missing COMMAND");
    if (strcmp(verb, "certificates") == 0) {
        if (a.ca == NULL || a.word_count == 1)
            options_fail("certificates: missing %s", a.ca == NULL ? "--ca DIR" : "HOST");
        return program_finish(certificates_make(a.ca, a.operands + 1, (size_t)a.word_count - 1));
    }
    if (a.word_count > 1 + is_tell)
        options_fail("%s: %s: unexpected argument", verb, a.operands[1 + is_tell]);
    if (is_tail)
        return program_finish(tail(&a));
    int fd = connect_socket(a.control);
    send_request(fd, &a);
    answer all = read_answer(fd);
    bool one = is_tell || strcmp(verb, "status") == 0;
    if (a.json)
        print_json_answer(&all, one);
    else if (one && all.count > 0)
        print_one(&all);
    else
        print_table(&all);
    if (!a.json && all.count == 0 && strcmp(verb, "reload") != 0)
        fprintf(stderr, "no %s\n", verb);
    for (size_t i = 0; i < all.count; i++)
        nl_record_free(all.records[i]);
    free(all.records);
    close(fd);
    return program_finish(PROGRAM_DONE);
}
