/*
 * The messages of a syslog connection to netlogd. Bytes give the same records and reports however they are divided. The
 * memory for an incomplete message is bounded.
 */
#include "fuzz.h"

#include "server.h"
#include "syslog_input.c" /* NOLINT: the fuzz target includes the module */

enum { MESSAGE_MAX = 64 };

const settings *server_settings(void)
{
    static const settings limited = {.max_record_size = MESSAGE_MAX};
    return &limited;
}

void peer_address_host(const struct sockaddr *peer, char name[PEER_ADDRESS_SIZE])
{
    (void)peer;
    name[0] = 'h';
}

static void note_record(void *user, const nl_record *record)
{
    nl_buffer *log = user;
    fuzz_put_string(log, record->event);
    fuzz_put_string(log, record->host);
    fuzz_put_string(log, record->prog);
    for (size_t i = 0; i < record->field_count; i++) {
        fuzz_put_string(log, record->fields[i].name);
        fuzz_put_string(log, record->fields[i].string);
    }
}

static void note_rejected(void *user, const nl_malformed *what)
{
    nl_buffer *log = user;
    fuzz_expect(what->text.size <= MESSAGE_MAX || strstr(what->reason, "incomplete") != NULL, "a report is short");
    nl_buffer_append(log, what->reason, strlen(what->reason));
}

static nl_buffer fuzz_feed_syslog(const uint8_t *data, size_t size, size_t step)
{
    nl_buffer log = {0};
    syslog_input *in =
        syslog_input_new(&(syslog_input_options){.put = note_record, .reject = note_rejected, .user = &log});
    syslog_input_set_sender(in, NULL);
    for (size_t at = 0; at < size; at += step) {
        size_t piece = size - at < step ? size - at : step;
        char *copy = fuzz_copy(data + at, piece);
        syslog_input_feed(in, copy, piece);
        free(copy);
        fuzz_expect(in->held.size <= MESSAGE_MAX + 16, "an incomplete message is not longer than its limit");
    }
    syslog_input_finish(in);
    fuzz_expect(in->stats.bytes == size, "each byte is counted");
    syslog_input_free(in);
    return log;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    nl_buffer whole = fuzz_feed_syslog(data, size, size + 1), bytes = fuzz_feed_syslog(data, size, 1);
    fuzz_expect(fuzz_same_bytes(&whole, &bytes), "the records are the same however the bytes are divided");
    nl_buffer_free(&whole);
    nl_buffer_free(&bytes);
    syslog_reader_free(reader);
    reader = NULL;
    return 0;
}
