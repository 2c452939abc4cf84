/* Decodes a whole log with the library's decoder: decode FILE. bench/compare counts this program's instructions. */
#include <netlogger.h>
#if __has_include("reader/decoder.h") /* for comparisons with older revisions */
#include "reader/decoder.h"
#endif

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0) {
        fprintf(stderr, "usage: decode FILE\n");
        return 2;
    }
    static char chunk[CHUNK];
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    unsigned long records = 0;
    ssize_t got;
    do {
        got = read(fd, chunk, sizeof chunk);
        if (got > 0)
            nl_decoder_feed(decoder, chunk, (size_t)got);
        else
            nl_decoder_finish(decoder);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            records++;
    } while (got > 0);
    printf("%lu\n", records);
    nl_decoder_free(decoder);
    close(fd);
    return 0;
}
