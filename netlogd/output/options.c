#include "config.h"

#include "record/format_info.h"
#include "options.h"

#include "base/error.h"
#include "file.h"
#include "program/program.h"
#include "record/format.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    ROTATE_DEFAULT = 256 << 20,
    ZSTD_MAX = 19,
    FORMAT_ZSTD_DEFAULT = 1,
    SPOOL_DEFAULT = 1 << 30,
    SPOOL_MIN = 1 << 20,
    SPOOL_FILES = 16, /* of a full spool, about */
    TARGET_MAX = 200,
};

static const int64_t SEAL_TIME_DEFAULT = 15 * 60 * NL_NS_PER_SECOND, SEAL_TIME_MIN = NL_NS_PER_SECOND;

static bool parse_sync(const char *value, output_options *options)
{
    if (strcasecmp(value, "never") == 0)
        options->sync = OUTPUT_SYNC_NEVER;
    else if (strcasecmp(value, "flush") == 0)
        options->sync = OUTPUT_SYNC_FLUSH;
    else if (nl_duration_parse(value, &options->sync_ns) && options->sync_ns > 0)
        options->sync = OUTPUT_SYNC_TIMED;
    else
        return false;
    return true;
}

static bool parse_level(const char *value, int *level)
{
    size_t number;
    if (!nl_size_parse(value, &number) || number > ZSTD_MAX)
        return false;
    *level = (int)number;
    return true;
}

static nl_status parse_filter(const char *value, output_options *options)
{
    nl_filter_free(options->filter);
    options->filter = nl_filter_parse(value);
    return options->filter != NULL ? NL_OK : nl_error_prepend("where");
}

static bool is_own(const output_kind *kind, const char *name)
{
    for (const char *const *own = kind->options; own != NULL && *own != NULL; own++)
        if (strcmp(*own, name) == 0)
            return true;
    return false;
}

/* "rotate_size, fsync and where", for a kind. */
static nl_status unknown_option(const output_kind *kind, const char *name)
{
    char own[256] = "";
    for (const char *const *one = kind->options; one != NULL && *one != NULL; one++)
        snprintf(own + strlen(own), sizeof own - strlen(own), ", %s", *one);
    return nl_error_set(NL_ERROR_INVALID, "unknown option \"%s\": where, format, zstd, fsync, %s%s are known", name,
                        kind->deliver != NULL ? "spool and spool_size" : "rotate_size, rotate_time, seal and seal_time",
                        own);
}

/* zstd_level is -1 when nothing was said of it. */
static nl_status read_option(const nl_url_option *option, output_options *options)
{
    const char *name = option->name, *value = option->value;
    bool good, spooled = options->kind->deliver != NULL;
    size_t size = 0;
    if (is_own(options->kind, name))
        return NL_OK;
    if (strcmp(name, "where") == 0)
        return parse_filter(value, options);
    if (strcmp(name, "format") == 0)
        good = (options->format = nl_format_parse(value)) != NL_FORMAT_UNKNOWN;
    else if (strcmp(name, "zstd") == 0)
        good = parse_level(value, &options->zstd_level);
    else if (!spooled && strcmp(name, "rotate_size") == 0)
        good = nl_size_parse(value, &size) && (options->rotate_size = size) > 0;
    else if (!spooled && strcmp(name, "rotate_time") == 0)
        good = nl_duration_parse(value, &options->rotate_ns) && options->rotate_ns > 0;
    else if (!spooled && strcmp(name, "seal") == 0)
        good = *value != '\0' && (options->seal_key = value) != NULL;
    else if (!spooled && strcmp(name, "seal_time") == 0)
        good = nl_duration_parse(value, &options->seal_ns) && options->seal_ns >= SEAL_TIME_MIN;
    else if (strcmp(name, "fsync") == 0)
        good = parse_sync(value, options);
    else if (spooled && strcmp(name, "spool") == 0)
        good = *value != '\0' && strstr(value, OUTPUT_NUMBER) == NULL;
    else if (spooled && strcmp(name, "spool_size") == 0)
        good = nl_size_parse(value, &size) && (options->spool_size = size) >= SPOOL_MIN;
    else
        return unknown_option(options->kind, name);
    return good ? NL_OK : nl_error_set(NL_ERROR_INVALID, "\"%s\" is no value for option %s", value, name);
}

/* Sets the path; DIR/ becomes a pattern. */
static void name_files(const nl_url *url, output_options *options)
{
    size_t size = strlen(url->path);
    bool folder = size > 0 && url->path[size - 1] == '/';
    const char *suffix = nl_format_get_info(options->format)->suffix;
    const char *packed = options->zstd_level > 0 && options->format != NL_FORMAT_NLB ? ".zst" : "";
    if (asprintf(&options->path, "%s%s%s%s", url->path, folder ? "netlog-" OUTPUT_NUMBER : "", folder ? suffix : "",
                 folder ? packed : "") < 0)
        program_fail(PROGRAM_PROBLEM, "out of memory");
}

static nl_status settle_files(const nl_url *url, output_options *options)
{
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = nl_format_of_name(url->path);
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = NL_FORMAT_ULM;
    name_files(url, options);
    const char *slash = strrchr(options->path, '/'), *number = strstr(options->path, OUTPUT_NUMBER);
    options->numbered = number != NULL;
    if (number != NULL && number < slash)
        return nl_error_set(NL_ERROR_INVALID, OUTPUT_NUMBER " may be in a file's name, not in its folder's");
    if (number != NULL && strstr(number + 1, OUTPUT_NUMBER) != NULL)
        return nl_error_set(NL_ERROR_INVALID, OUTPUT_NUMBER " may be there once");
    if (options->zstd_level < 0 && options->format == NL_FORMAT_NLB)
        options->zstd_level = FORMAT_ZSTD_DEFAULT;
    return NL_OK;
}

/* FOLDER/WHITHER.nlb/spool-{N}.nlb: what is no letter, digit, dot or hyphen in the target becomes '_'. */
static nl_status settle_spool(const nl_url *url, output_options *options)
{
    const char *folder = nl_url_option_value(url, "spool");
    if (folder == NULL)
        return nl_error_set(NL_ERROR_INVALID, "spool=FOLDER is wanted: where what cannot be delivered yet is kept");
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = options->kind->format;
    if (options->kind->numbered && options->format != NL_FORMAT_NLB)
        return nl_error_set(NL_ERROR_INVALID, "only format nlb can be delivered there exactly once");
    if (options->zstd_level > 0 && options->format != NL_FORMAT_NLB)
        return nl_error_set(NL_ERROR_INVALID, "text is not compressed there");
    char name[TARGET_MAX + 1];
    snprintf(name, sizeof name, "%s", options->target);
    for (char *at = name; *at != '\0'; at++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *at) == NULL)
            *at = '_';
    const char *format = nl_format_name(options->format);
    if (asprintf(&options->spool, "%s/%s.%s", folder, name, format) < 0 ||
        asprintf(&options->path, "%s/spool-" OUTPUT_NUMBER ".%s", options->spool, format) < 0)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    options->numbered = true;
    options->rotate_size = options->spool_size / SPOOL_FILES;
    return NL_OK;
}

static nl_status settle(const nl_url *url, output_options *options)
{
    nl_status status = options->kind->deliver != NULL  ? settle_spool(url, options)
                       : url->scheme == NL_SCHEME_FILE ? settle_files(url, options)
                                                       : NL_OK;
    if (status != NL_OK)
        return status;
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = NL_FORMAT_ULM;
    options->zstd_level = options->zstd_level < 0 ? 0 : options->zstd_level;
    bool rotates = options->rotate_size > 0 || options->rotate_ns > 0;
    if (rotates && !options->numbered)
        return nl_error_set(NL_ERROR_INVALID,
                            "to rotate, files must be numbered: put " OUTPUT_NUMBER " into the name, or end it in /");
    if (options->seal_key != NULL && !options->numbered)
        return nl_error_set(NL_ERROR_INVALID,
                            "seal= needs numbered files; put " OUTPUT_NUMBER " into the name, or end it in /");
    if (options->numbered && !rotates)
        options->rotate_size = ROTATE_DEFAULT;
    return options->kind->check != NULL ? options->kind->check(url, options) : NL_OK;
}

static nl_status parse(const nl_url *url, output_options *options)
{
    options->kind = output_kind_of(url->scheme);
    if (options->kind == NULL)
        return nl_error_set(NL_ERROR_INVALID, "records cannot be written there");
    for (size_t i = 0; i < url->option_count; i++)
        if (read_option(&url->options[i], options) != NL_OK)
            return NL_FAILED;
    return settle(url, options);
}

nl_status output_options_parse(const char *text, output_options *options)
{
    *options = (output_options){.zstd_level = -1, .spool_size = SPOOL_DEFAULT, .seal_ns = SEAL_TIME_DEFAULT};
    options->url = nl_url_parse(text);
    if (options->url == NULL)
        return NL_FAILED;
    /* A bare name of a file may have a '?' in it. */
    size_t size = options->url->option_count > 0 ? strcspn(text, "?") : strlen(text);
    bool has_secret = options->url->scheme == NL_SCHEME_NATS; /* a password may be there */
    if (has_secret && asprintf(&options->target, "nats://%s/%s", options->url->host, options->url->path) < 0)
        options->target = NULL;
    else if (!has_secret)
        options->target = strndup(text, size);
    if (options->target == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    nl_status status = parse(options->url, options);
    if (status == NL_OK)
        return NL_OK;
    output_options_free(options);
    return NL_FAILED;
}

void output_options_free(output_options *options)
{
    nl_url_free(options->url);
    nl_filter_free(options->filter);
    free(options->target);
    free(options->path);
    free(options->spool);
    *options = (output_options){0};
}

bool output_options_same_target(const output_options *a, const output_options *b)
{
    /* Files of two patterns may share a journal: then they are one output's. */
    char *first = output_file_name_beside(a, ".streams"), *second = output_file_name_beside(b, ".streams");
    bool same = first == NULL || second == NULL ? first == second : strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}
