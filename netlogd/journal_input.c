#include "config.h"

#include "journal_input.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/replacement.h"
#include "base/write_some.h"
#include "flush.h"
#include "numbered_input.h"
#include "output/outputs.h"
#include "program/program.h"
#include "record/bytes.h"
#include "server.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-journal.h>

enum {
    READ_TICK_MS = 200,
    TEXT_SIZE = 256 << 10, /* bytes of entries to put into the outputs in one step */
    SAVE_NS = 1000000000,  /* minimum interval between two writes of the cursor */
    STREAM_SIZE = 16,
};

/* The functions of libsystemd. */
#define JOURNAL_FUNCTIONS(FUNCTION)                                                                                    \
    FUNCTION(sd_journal_, close)                                                                                       \
    FUNCTION(sd_journal_, enumerate_available_data)                                                                    \
    FUNCTION(sd_journal_, get_cursor)                                                                                  \
    FUNCTION(sd_journal_, get_fd)                                                                                      \
    FUNCTION(sd_journal_, get_realtime_usec)                                                                           \
    FUNCTION(sd_journal_, next)                                                                                        \
    FUNCTION(sd_journal_, open_directory)                                                                              \
    FUNCTION(sd_journal_, previous)                                                                                    \
    FUNCTION(sd_journal_, process)                                                                                     \
    FUNCTION(sd_journal_, restart_data)                                                                                \
    FUNCTION(sd_journal_, seek_cursor)                                                                                 \
    FUNCTION(sd_journal_, seek_head)                                                                                   \
    FUNCTION(sd_journal_, set_data_threshold)                                                                          \
    FUNCTION(sd_journal_, test_cursor)

NL_LIBRARY_DEFINE(journald, SYSTEMD_LIBRARY, JOURNAL_FUNCTIONS);

static struct {
    struct event *tick;
    sd_journal *journal;
    numbered_input *input;
    importer *importer;
    nl_buffer text;
    char *path; /* path of the file with the cursor */
    unsigned char stream[STREAM_SIZE];
    char *cursor;     /* cursor of the last entry that was put into the outputs; NULL: no entry yet */
    uint64_t next;    /* number of the next entry */
    uint64_t records; /* number of records since netlogd started */
    bool changed;     /* the cursor has changed since it was last written */
    bool stored;      /* the outputs have stored all entries up to the cursor */
    int64_t saved_ns;
} journal_input;

/* ---- the cursor ---- */

/* Reads the file with the cursor. Returns false if the file does not exist. */
static bool load_cursor(void)
{
    char *line = NULL, stream[2 * STREAM_SIZE + 1] = "";
    size_t capacity = 0;
    int at = 0;
    FILE *file = fopen(journal_input.path, "re");
    if (file == NULL && errno == ENOENT)
        return false;
    ssize_t length = file != NULL ? getline(&line, &capacity, file) : -1;
    bool good = length > 0 && line[length - 1] == '\n' &&
                sscanf(line, "journal 1 %32s %" SCNu64 " %n", stream, &journal_input.next, &at) == 2 && at > 0 &&
                strlen(stream) == (size_t)2 * STREAM_SIZE;
    for (size_t i = 0; i < STREAM_SIZE && good; i++) {
        int high = nl_hex_digit(stream[2 * i]), low = nl_hex_digit(stream[2 * i + 1]);
        good = high >= 0 && low >= 0;
        journal_input.stream[i] = (unsigned char)(high * 16 + low);
    }
    if (!good)
        program_fail(PROGRAM_PROBLEM, "%s: invalid; to read the whole journal again, remove this file",
                     journal_input.path);
    line[length - 1] = '\0';
    journal_input.cursor = line[at] != '\0' ? program_copy(line + at) : NULL;
    free(line);
    fclose(file);
    return true;
}

static bool save_cursor(void)
{
    nl_replacement file;
    char stream[2 * STREAM_SIZE + 1];
    for (size_t i = 0; i < STREAM_SIZE; i++)
        snprintf(stream + 2 * i, 3, "%02x", journal_input.stream[i]);
    if (!nl_replacement_open(&file, journal_input.path))
        return nl_error_set_errno("write %s", journal_input.path) == NL_OK;
    char *line = program_format("journal 1 %s %" PRIu64 " %s\n", stream, journal_input.next,
                                journal_input.cursor != NULL ? journal_input.cursor : "");
    bool good = nl_write_all(file.fd, line, strlen(line)) && nl_replacement_keep(&file);
    if (!good)
        nl_error_set_errno("write %s", journal_input.path);
    nl_replacement_free(&file);
    close(file.fd);
    free(line);
    journal_input.changed = !good;
    journal_input.saved_ns = nl_monotonic_ns();
    return good;
}

/* ---- reading ---- */

static void add_journal_field(const char *name, size_t name_size, const char *value, size_t size)
{
    uint64_t stored = htole64((uint64_t)size);
    nl_buffer *text = &journal_input.text;
    nl_buffer_append(text, name, name_size);
    nl_buffer_append(text, "\n", 1);
    nl_buffer_append(text, (const char *)&stored, sizeof stored);
    nl_buffer_append(text, value, size);
    nl_buffer_append(text, "\n", 1);
}

/* Adds the current entry in the export format. */
static void add_entry(void)
{
    uint64_t time_us = 0;
    const void *data;
    size_t size;
    char text[24];
    journald.get_realtime_usec(journal_input.journal, &time_us);
    int length = snprintf(text, sizeof text, "%" PRIu64, time_us);
    add_journal_field("__REALTIME_TIMESTAMP", strlen("__REALTIME_TIMESTAMP"), text, (size_t)length);
    for (journald.restart_data(journal_input.journal);
         journald.enumerate_available_data(journal_input.journal, &data, &size) > 0;) {
        const char *equals = memchr(data, '=', size);
        if (equals != NULL)
            add_journal_field(data, (size_t)(equals - (const char *)data), equals + 1,
                              size - (size_t)(equals + 1 - (const char *)data));
    }
    nl_buffer_append(&journal_input.text, "\n", 1);
}

static void report_journal(const char *doing, int result)
{
    errno = -result;
    nl_error_set_errno("%s the journal", doing);
    program_print_error();
}

/*
 * Reads the next entries, and puts their records into the outputs. Returns whether the journal may have more entries.
 */
static bool read_entries(void)
{
    int result = 0;
    char *cursor = NULL;
    journal_input.text.size = 0;
    while (journal_input.text.size < TEXT_SIZE && (result = journald.next(journal_input.journal)) > 0)
        add_entry();
    if (result < 0)
        report_journal("read", result);
    if (journal_input.text.size == 0)
        return false;
    journald.get_cursor(journal_input.journal, &cursor);
    import_about about = {.host = server_host()};
    sink s = {.out = numbered_input_begin(journal_input.input, journal_input.next), .about = &about};
    journal_importer.read(journal_input.importer, journal_input.text.data, journal_input.text.size, &s);
    sink_free(&s);
    uint64_t count = numbered_input_end(journal_input.input);
    journal_input.next += count;
    journal_input.records += count;
    free(journal_input.cursor);
    journal_input.cursor = cursor;
    journal_input.changed = true;
    journal_input.stored = false;
    numbered_input_put(journal_input.input, journal_input.text.size);
    return result > 0;
}

static void on_journal_tick(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    bool more = false;
    if (!flush_is_paused() && !outputs_are_blocked() && !server_is_stopping()) {
        journald.process(journal_input.journal);
        more = read_entries();
    }
    if (journal_input.changed && journal_input.stored && nl_monotonic_ns() - journal_input.saved_ns >= SAVE_NS &&
        !save_cursor())
        program_print_error();
    if (more)
        event_active(journal_input.tick, EV_TIMEOUT, 0);
    else
        event_add(journal_input.tick, &(struct timeval){.tv_usec = READ_TICK_MS * 1000});
}

void journal_input_acknowledge(void)
{
    journal_input.stored = true;
}

/* ---- start and end ---- */

static void seek_cursor(void)
{
    sd_journal *j = journal_input.journal;
    if (journal_input.cursor == NULL) {
        journald.seek_head(j);
        return;
    }
    journald.seek_cursor(j, journal_input.cursor);
    if (journald.next(j) > 0 && journald.test_cursor(j, journal_input.cursor) > 0)
        return;
    program_error("journal: the last entry that netlogd read was deleted; netlogd may have missed entries after it");
    nl_write(server_log(), NL_WARNING, "Netlogd.InputLost", "FILE=journal:");
    journald.previous(j); /* the next call of sd_journal_next moves to the first entry after the cursor */
}

bool journal_input_load(void)
{
    return nl_library_load(&journald_library);
}

void journal_input_start(void)
{
    const char *directory = server_settings()->journal;
    if (directory == NULL)
        return;
    journal_input.path = outputs_name_beside(".cursor");
    if (journal_input.path == NULL)
        program_fail(PROGRAM_PROBLEM, "--input requires an output with a file or a spool; netlogd stores its position "
                                      "in the journal beside this output");
    int result = journald.open_directory(&journal_input.journal, directory, 0);
    if (result < 0) {
        errno = -result;
        nl_error_set_errno("open the journal in %s", directory);
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    }
    journald.set_data_threshold(journal_input.journal, server_settings()->max_record_size);
    journald.get_fd(journal_input.journal); /* begins to watch for new entries */
    if (!load_cursor() && (getrandom(journal_input.stream, STREAM_SIZE, 0) != STREAM_SIZE || !save_cursor()))
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    seek_cursor();
    journal_input.input = numbered_input_new("journal", journal_input.stream);
    journal_input.importer = importer_open(&journal_importer, NULL);
    journal_input.tick = server_new_event(-1, 0, on_journal_tick, NULL);
    event_priority_set(journal_input.tick, SERVER_PRIORITY_TURN);
    event_active(journal_input.tick, EV_TIMEOUT, 0);
    nl_write(server_log(), NL_USAGE, "Netlogd.Input", "FILE=journal:%s", directory);
}

uint64_t journal_input_count(void)
{
    return journal_input.records;
}

void journal_input_free(void)
{
    if (journal_input.tick == NULL)
        return;
    if (journal_input.changed && journal_input.stored && !save_cursor())
        program_print_error();
    event_free(journal_input.tick);
    journald.close(journal_input.journal);
    numbered_input_free(journal_input.input);
    importer_close(journal_input.importer);
    nl_buffer_free(&journal_input.text);
    free(journal_input.cursor);
    free(journal_input.path);
}
