/*
 * Bytes from a source, for programs that read what no decoder (decoder.h) knows.
 *
 * A source is a file, a pipe, standard input, memory or a collector (url.h); zstd-compressed bytes come out
 * decompressed. One source is for one thread at a time.
 */
#ifndef NETLOGGER_SOURCE_H
#define NETLOGGER_SOURCE_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_source nl_source;

/*
 * Opens what url names. follow: at the end more may come, as with nl_reader_options; a followed file need not be there
 * yet. nonblocking: with a pipe or a collector never wait. url need not outlive the call. NULL with the reason in
 * nl_error_message(). Closed with nl_source_close, to which NULL may be given.
 */
NL_API nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking);
NL_API void nl_source_close(nl_source *source);

/*
 * Gives the next bytes, decompressed: *data and *size (never 0) on NL_OK, the source's own until the next call.
 * NL_AGAIN: followed or nonblocking, and there is nothing now. NL_END: the end, or, when followed, the end of a file
 * that has been replaced or truncated: calling again gives the new one from its start. NL_FAILED: reading or
 * decompressing failed.
 */
NL_API nl_status nl_source_read(nl_source *source, const char **data, size_t *size);

/* The size of a plain file as it is stored, 0 when not known, and how many bytes of it were read. */
NL_API uint64_t nl_source_size(const nl_source *source);
NL_API uint64_t nl_source_position(const nl_source *source);

NL_END_DECLS
#endif
