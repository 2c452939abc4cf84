#include "config.h"

#include "past.h"

#include "base/memory.h"
#include "output/file.h"
#include "program/program.h"
#include "reader/reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { READ_SIZE = 16 << 10 }; /* small, because each subscription that reads stored records has a buffer */

#define AHEAD_NS (3600 * NL_NS_PER_SECOND)

struct past {
    output_options files; /* only path and numbered are set */
    uint64_t number;      /* number of the file that is being read; 0: no file yet, or files are not numbered */
    int64_t since_ns;
    const nl_filter *where;
    nl_reader *reader;
    bool seeking; /* the start in the file has not been found yet */
};

/*
 * Returns whether the file with this number exists and was last written after since_ns, or at most an hour before
 * since_ns.
 */
static bool is_wanted(const past *p, uint64_t number)
{
    struct stat status;
    char *name = output_file_name(&p->files, number);
    bool there = stat(name, &status) == 0;
    free(name);
    if (!there)
        return false;
    int64_t written_ns = (int64_t)status.st_mtim.tv_sec * NL_NS_PER_SECOND + status.st_mtim.tv_nsec;
    return p->since_ns < INT64_MIN + AHEAD_NS || written_ns >= p->since_ns - AHEAD_NS;
}

/*
 * Sets *number to the number of the first file above `above` that is_wanted accepts. If is_wanted accepts no file,
 * chooses the last file. If no file has a number above `above`, sets *number to 0. Files with higher numbers are newer.
 */
static nl_status find_first(const past *p, uint64_t above, uint64_t *number)
{
    uint64_t *numbers;
    size_t count, low = 0;
    nl_status status = output_file_list(&p->files, above, &numbers, &count);
    *number = 0;
    if (status != NL_OK || count == 0) {
        free(numbers);
        return status;
    }
    for (size_t high = count - 1; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (is_wanted(p, numbers[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    *number = numbers[low];
    free(numbers);
    return NL_OK;
}

static nl_status open_file(past *p, uint64_t number)
{
    char *name = output_file_name(&p->files, number);
    nl_reader_close(p->reader);
    p->number = number;
    p->reader = NULL;
    p->seeking = true;
    nl_url *url = nl_url_parse_for(name, NL_URL_READ);
    nl_source *source = url != NULL ? nl_source_open(url, true, true) : NULL;
    nl_url_free(url);
    if (source != NULL) {
        nl_source_set_read_size(source, READ_SIZE);
        p->reader = nl_reader_open_source(source, &(nl_decoder_options){.source = name}, true);
    }
    free(name);
    return p->reader != NULL ? NL_OK : NL_FAILED;
}

past *past_open(const output *out, int64_t since_ns, const nl_filter *where)
{
    const output_options *options = output_get_options(out);
    past *p = nl_memory_check(calloc(1, sizeof *p));
    p->files.path = program_copy(options->path);
    p->files.numbered = options->numbered;
    p->since_ns = since_ns;
    p->where = where;
    uint64_t number = 0;
    nl_status status = p->files.numbered ? find_first(p, 0, &number) : NL_OK;
    if (status == NL_OK && (!p->files.numbered || number > 0))
        status = open_file(p, number);
    if (status == NL_OK)
        return p;
    past_close(p);
    return NULL;
}

void past_close(past *p)
{
    if (p == NULL)
        return;
    nl_reader_close(p->reader);
    free(p->files.path);
    free(p);
}

uint64_t past_get_number(const past *p)
{
    return p->number;
}

bool past_is_of(const past *p, const output *out)
{
    const output_options *options = output_get_options(out);
    return output_holds_all(out) && options->numbered == p->files.numbered && strcmp(options->path, p->files.path) == 0;
}

nl_status past_next(past *p, const nl_record **record)
{
    *record = NULL;
    if (p->seeking) {
        nl_status status = nl_reader_seek_matches(p->reader, p->since_ns, INT64_MAX, p->where);
        p->seeking = status == NL_AGAIN;
        return status == NL_AGAIN || status == NL_OK ? NL_OK : NL_FAILED;
    }
    nl_status status = p->reader != NULL ? nl_reader_next(p->reader, record) : NL_AGAIN;
    if (status != NL_AGAIN && status != NL_OK)
        return NL_FAILED;
    if (status == NL_OK || !p->files.numbered)
        return status;
    /* When the next file exists, netlogd adds no record to this file. */
    uint64_t number;
    status = find_first(p, p->number, &number);
    if (status != NL_OK)
        return status;
    return number > 0 ? open_file(p, number) : NL_AGAIN;
}
