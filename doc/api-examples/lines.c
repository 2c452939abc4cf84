/* Where the lines of a text log are and when each was, without reading the rest: bytes of a source, scanned. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char text[] = "DATE=20260131120000.000001 HOST=a PROG=b LVL=Usage NL.EVNT=One\n"
                           "DATE=20260131120000.000002 HOST=a PROG=b LVL=Usage NL.EVNT=Two\n"
                           "NL.EVNT=Late HOST=a DATE=20260131120000.000003\n";

int main(void)
{
    FILE *file = fopen("lines.log", "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        return 1;

    /* The bytes, as they are. */
    nl_url *url = nl_url_parse("file:lines.log");
    nl_source *source = nl_source_open(url, false, false);
    const char *data;
    size_t size, used;
    if (source == NULL || nl_source_read(source, &data, &size) != NL_OK)
        return 1;
    printf("%" PRIu64 " of %" PRIu64 " bytes\n", nl_source_position(source), nl_source_size(source));

    /* Two lines are plain; the third one is a decoder's, which is told of the two that it does not get. */
    nl_line_scanner *scanner = nl_line_scanner_new(NL_FORMAT_ULM, NL_FRACTION_DECIMAL);
    nl_scanned_line lines[8];
    size_t count = nl_lines_scan(scanner, data, size, 0, lines, 8, &used);
    nl_decoder *decoder = nl_decoder_new(NULL);
    uint64_t plain = 0, passed = 0, read = 0;
    const nl_record *record;
    for (size_t i = 0; i < count; i++) {
        if (nl_line_is_plain(lines[i])) {
            plain++;
            passed += nl_line_size(lines[i]) + 1;
            continue;
        }
        nl_decoder_pass_over(decoder, NL_FORMAT_ULM, plain, passed);
        nl_decoder_feed(decoder, data + nl_line_offset(lines[i]), nl_line_size(lines[i]) + 1);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            read++;
    }
    bool good = count == 3 && plain == 2 && read == 1 && used == size && !nl_line_scanner_met_nul(scanner) &&
                lines[0].place == nl_line_place(0, strchr(text, '\n') - text, true);
    nl_decoder_free(decoder);
    nl_line_scanner_free(scanner);
    nl_source_close(source);
    nl_url_free(url);
    return good ? 0 : 1;
}
