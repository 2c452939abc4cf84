#include "config.h"

#include "records.h"

#include "base/error.h"
#include "base/monotonic.h"
#include "clocks.h"
#include "counts.h"
#include "client_limits.h"
#include "output/outputs.h"
#include "reader/decoder_work.h"
#include "record/line_scanner.h"
#include "record/terminal.h"
#include "server.h"
#include "subscription.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { REPORTED_MAX = 10, TEXT_MAX = 80 };

static const char clock_event[] = "=Clock"; /* the beginning of the events of clocks.h, as the value of a field */

static int reject_fd = -1;

nl_status records_open_reject(const char *path)
{
    if (path == NULL)
        return NL_OK;
    reject_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return reject_fd >= 0 ? NL_OK : nl_error_set_errno("open %s", path);
}

void records_close_reject(void)
{
    if (reject_fd >= 0)
        close(reject_fd);
    reject_fd = -1;
}

bool records_want_blocks(void)
{
    return outputs_want_blocks() && !subscriptions_want_records();
}

bool records_admit_block(const nl_block_header *block, unsigned owner, const char *peer, const char *fate)
{
    bool known = nl_streams_know(outputs_streams(), block->stream);
    bool admitted = outputs_admit_block(block, owner);
    const char *problem = NULL;
    if (!known && !admitted)
        problem = "too many streams are in use";
    else if (!known && !stream_limit_admit(owner, nl_monotonic_ns()))
        problem = "the client begins too many streams";
    else if (!admitted)
        problem = "the stream has too many gaps; deliver older records first";
    if (problem == NULL)
        return true;
    char reason[160];
    snprintf(reason, sizeof reason, "%s: %s (doc/wire-protocol.md, Limits)", fate, problem);
    counts_report(known ? COUNT_GAPS_REFUSED : COUNT_STREAMS_REFUSED, peer, reason);
    return false;
}

bool records_put_block(nl_decoder *decoder, const nl_block_view *block, bool *numbered)
{
    static const unsigned char none[sizeof block->stream];
    bool whole = outputs_put_block(block);
    *numbered = memcmp(block->stream, none, sizeof none) != 0;
    if (whole)
        counts_add(COUNT_RECORDS, block->record_count);
    else if (block->taken)
        nl_decoder_decline_block(decoder);
    return whole;
}

bool records_put(const nl_record *record, const uint64_t *sequence, const char *peer)
{
    outputs_put(record, sequence);
    subscriptions_put(record);
    return clocks_put(record, peer);
}

/* ---- lines that are not decoded ---- */

/* Decodes a line and passes its record on. Returns whether the record describes a clock. */
static bool put_decoded(nl_format format, nl_string line, const char *peer)
{
    static nl_record *record;
    if (record == NULL)
        record = nl_record_new();
    /* The scanner has checked the line, so that the only possible error is a lack of memory. */
    if (record == NULL || nl_record_decode(record, format, NL_FRACTION_DECIMAL, line.data, line.size) != NL_OK)
        return false;
    return records_put(record, NULL, peer);
}

/* Returns whether a line must be decoded, because it is not stored unchanged or may describe a clock. */
static bool must_be_decoded(nl_string line, bool may_have_clock)
{
    return line.data[line.size] != '\n' || nl_terminal_controls(line.data, line.size) ||
           (may_have_clock && memmem(line.data, line.size, clock_event, sizeof clock_event - 1) != NULL);
}

size_t records_put_lines(nl_decoder *decoder, const char *peer, size_t *clocks)
{
    enum { LINES = 1024 };
    static nl_scanned_line lines[LINES];
    const nl_format format = nl_decoder_format(decoder);
    const char *text;
    if (subscriptions_want_records() || !outputs_want_lines(format))
        return 0;
    const size_t count = nl_decoder_next_plain(decoder, lines, LINES, &text);
    if (count == 0)
        return 0;
    const size_t size = (size_t)nl_line_offset(lines[count - 1]) + nl_line_size(lines[count - 1]);
    const bool may_have_clock = memmem(text, size, clock_event, sizeof clock_event - 1) != NULL;
    size_t begin = 0; /* index of the first line that was not passed on */
    for (size_t i = 0; i < count; i++) {
        const nl_string line = {text + nl_line_offset(lines[i]), nl_line_size(lines[i])};
        if (!must_be_decoded(line, may_have_clock))
            continue;
        outputs_put_lines(text, lines + begin, i - begin);
        *clocks += put_decoded(format, line, peer);
        begin = i + 1;
    }
    outputs_put_lines(text, lines + begin, count - begin);
    return count;
}

/* Appends malformed input to its file. Logs a failure, and does not try again. */
static void write_reject(nl_string text)
{
    nl_buffer line = {0};
    if (reject_fd < 0)
        return;
    nl_buffer_append(&line, text.data, text.size);
    nl_buffer_append(&line, "\n", 1);
    if (write(reject_fd, line.data, line.size) < 0)
        nl_write(server_log(), NL_WARNING, "Netlogd.RejectFailed", "REASON=%s", strerror(errno));
    nl_buffer_free(&line);
}

void records_reject(const nl_malformed *what, const char *peer, const char *message, uint64_t number)
{
    counts_add(COUNT_MALFORMED, 1);
    write_reject(what->text);
    if (number <= REPORTED_MAX)
        nl_write(server_log(), NL_WARNING, "Netlogd.Malformed", "PEER=%s%s%s LINE=%llu REASON=%s TEXT=%.*s%s", peer,
                 message[0] != '\0' ? " MESSAGE=" : "", message, (unsigned long long)what->line, what->reason,
                 what->text.size < TEXT_MAX ? (int)what->text.size : TEXT_MAX, what->text.data,
                 number == REPORTED_MAX ? " NOTE=\"further malformed input of this client is only counted\"" : "");
}
