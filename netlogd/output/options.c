#include "config.h"

#include "options.h"

#include "failure.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ROTATE_DEFAULT = 256 << 20, ZSTD_MOST = 19, FORMAT_ZSTD_DEFAULT = 1 };

static bool parse_sync(const char *value, output_options *options)
{
    if (strcasecmp(value, "never") == 0)
        options->sync = OUTPUT_SYNC_NEVER;
    else if (strcasecmp(value, "flush") == 0)
        options->sync = OUTPUT_SYNC_FLUSH;
    else if (program_duration_parse(value, &options->sync_ns))
        options->sync = OUTPUT_SYNC_TIMED;
    else
        return false;
    return true;
}

static bool parse_level(const char *value, int *level)
{
    size_t number;
    if (!nl_size_parse(value, &number) || number > ZSTD_MOST)
        return false;
    *level = (int)number;
    return true;
}

/* zstd_level is -1 when nothing was said of it. */
static nl_status read_option(const nl_url_option *option, output_options *options)
{
    const char *name = option->name, *value = option->value;
    size_t size = 0;
    bool good;
    if (strcmp(name, "format") == 0)
        good = (options->format = nl_format_parse(value)) != NL_FORMAT_UNKNOWN;
    else if (strcmp(name, "zstd") == 0)
        good = parse_level(value, &options->zstd_level);
    else if (strcmp(name, "rotate_size") == 0)
        good = nl_size_parse(value, &size) && (options->rotate_size = size) > 0;
    else if (strcmp(name, "rotate_time") == 0)
        good = program_duration_parse(value, &options->rotate_ns);
    else if (strcmp(name, "fsync") == 0)
        good = parse_sync(value, options);
    else
        return failure("unknown option \"%s\": format, zstd, rotate_size, rotate_time and fsync are known", name);
    return good ? NL_OK : failure("\"%s\" is no value for option %s", value, name);
}

/* A path of ours; DIR/ becomes a pattern. */
static char *path_of(const nl_url *url, const output_options *options)
{
    size_t size = strlen(url->path);
    const char *ending = options->format == NL_FORMAT_NLB  ? "netlog-" OUTPUT_NUMBER ".nlb"
                         : options->format == NL_FORMAT_BP ? "netlog-" OUTPUT_NUMBER ".bp"
                                                           : "netlog-" OUTPUT_NUMBER ".log";
    bool folder = size > 0 && url->path[size - 1] == '/';
    const char *packed = options->zstd_level > 0 && options->format != NL_FORMAT_NLB ? ".zst" : "";
    char *path = malloc(size + strlen(ending) + sizeof ".zst");
    if (path == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    strcpy(path, url->path);
    if (folder)
        strcat(strcat(path, ending), packed);
    return path;
}

static nl_status settle(const nl_url *url, output_options *options)
{
    if (url->scheme == NL_SCHEME_FILE) {
        if (options->format == NL_FORMAT_UNKNOWN)
            options->format = nl_format_of_name(url->path);
        if (options->format == NL_FORMAT_UNKNOWN)
            options->format = NL_FORMAT_ULM;
        options->path = path_of(url, options);
        const char *slash = strrchr(options->path, '/'), *number = strstr(options->path, OUTPUT_NUMBER);
        options->numbered = number != NULL;
        if (number != NULL && number < slash)
            return failure(OUTPUT_NUMBER " may be in a file's name, not in its folder's");
        if (number != NULL && strstr(number + 1, OUTPUT_NUMBER) != NULL)
            return failure(OUTPUT_NUMBER " may be there once");
    }
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = NL_FORMAT_ULM;
    if (options->zstd_level < 0)
        options->zstd_level = options->format == NL_FORMAT_NLB && options->path != NULL ? FORMAT_ZSTD_DEFAULT : 0;
    bool rotates = options->rotate_size > 0 || options->rotate_ns > 0;
    if (rotates && !options->numbered)
        return failure("to rotate, files must be numbered: put " OUTPUT_NUMBER " into the name, or end it in /");
    if (options->numbered && !rotates)
        options->rotate_size = ROTATE_DEFAULT;
    return NL_OK;
}

static nl_status parse(const nl_url *url, output_options *options)
{
    if (url->scheme != NL_SCHEME_FILE && url->scheme != NL_SCHEME_STDIO)
        return failure("it is neither a file nor a folder");
    for (size_t i = 0; i < url->option_count; i++)
        if (read_option(&url->options[i], options) != NL_OK)
            return NL_FAILED;
    return settle(url, options);
}

nl_status output_options_parse(const char *text, output_options *options)
{
    *options = (output_options){.zstd_level = -1};
    nl_url *url = nl_url_parse(text);
    if (url == NULL)
        return failure("output: %s", nl_error_message());
    nl_status status = parse(url, options);
    nl_url_free(url);
    if (status == NL_OK)
        return NL_OK;
    char why[512];
    snprintf(why, sizeof why, "%s", failure_text());
    output_options_free(options);
    return failure("output %s: %s", text, why);
}

void output_options_free(output_options *options)
{
    free(options->path);
    options->path = NULL;
}
