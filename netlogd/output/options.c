#include "config.h"

#include "options.h"

#include "base/error.h"
#include "file.h"
#include "program/program.h"
#include "record/format.h"
#include "requests/request_filter.h"
#include "value_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROTATE_DEFAULT = 256 << 20,
    FORMAT_ZSTD_DEFAULT = 1,
    TABLES_MAX = 8,
    SPOOL_FILES = 16, /* approximate number of files in a full spool */
    KEPT_FILES = 16,  /* minimum number of files in an archive with keep_size= */
    KEPT_PERIODS = 8, /* with keep=, the number of files if each file ends because of its age */
    TARGET_MAX = 200,
};

/* ---- kinds ---- */

const output_kind output_kind_file = {.name = "file"};

static const output_kind *output_kind_of(nl_scheme scheme)
{
    static const struct {
        nl_scheme scheme;
        const output_kind *kind;
    } kinds[] = {
        {NL_SCHEME_STDIO, &output_kind_file},     {NL_SCHEME_FILE, &output_kind_file},
        {NL_SCHEME_NETLOG, &output_kind_forward}, {NL_SCHEME_NETLOGS, &output_kind_forward},
        {NL_SCHEME_UNIX, &output_kind_forward},   {NL_SCHEME_SYSLOG, &output_kind_syslog},
        {NL_SCHEME_NATS, &output_kind_nats},      {NL_SCHEME_OTLP, &output_kind_otlp},
        {NL_SCHEME_OTLP_HTTP, &output_kind_otlp},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].scheme == scheme)
            return kinds[i].kind;
    return NULL;
}

/* ---- option rows ---- */

static bool set_filter(void *settings, const nl_option *row, const char *value)
{
    output_options *options = settings;
    (void)row;
    nl_filter_free(options->filter);
    options->filter = nl_filter_parse(value);
    return options->filter != NULL;
}

static const char *get_filter(const void *settings, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    (void)scratch;
    return index == 0 ? nl_url_option_value(((const output_options *)settings)->url, "where") : NULL;
}

static bool set_keep_where(void *settings, const nl_option *row, const char *value)
{
    output_options *options = settings;
    (void)row;
    request_filter_free(options->keep_where);
    options->keep_where = NULL;
    return request_filter_narrow(&options->keep_where, value);
}

static const char *get_keep_where(const void *settings, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    (void)scratch;
    return index == 0 ? nl_url_option_value(((const output_options *)settings)->url, "keep_where") : NULL;
}

static bool set_spool(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((output_options *)settings)->spool_root = value;
    return strstr(value, OUTPUT_NUMBER) == NULL ||
           nl_error_false(NL_ERROR_INVALID, OUTPUT_NUMBER " is not allowed in the directory name");
}

static bool set_index(void *settings, const nl_option *row, const char *value)
{
    value_choice choice;
    (void)row;
    ((output_options *)settings)->index = value;
    return value_choice_set(&choice, value) == NL_OK;
}

const nl_option output_rows[] = {
    {.name = "where",
     .value = "EXPRESSION",
     .set = set_filter,
     .get = get_filter,
     .help = "Use only records that match EXPRESSION. Write & in EXPRESSION as %26, or use the operator \"and\". In a "
             "configuration file, write # as %23"},
    {.name = "format",
     .type = NL_OPTION_CHOICE,
     .list_choices = nl_format_choices,
     .initial = "(nlb for collectors, NATS and OTLP; for files, the format of the suffix, such as .nlb; otherwise ulm)",
     NL_OPTION_MEMBER(output_options, format),
     .help = "Format of the records"},
    {.name = "zstd",
     .type = NL_OPTION_COUNT,
     .maximum = 19,
     .value = "LEVEL",
     .initial = "(1 for nlb files, otherwise 0)",
     NL_OPTION_MEMBER(output_options, zstd_level),
     .help = "Compression level; 0 disables compression. Each flush of text is a separate zstd frame, so a truncated "
             "file loses only its last frame"},
    {.name = "fsync",
     .type = NL_OPTION_DURATION,
     .choices = "never|flush",
     .value = "never|flush|DURATION",
     .minimum = 1000000,
     .initial = "never",
     NL_OPTION_MEMBER(output_options, sync_ns),
     .help = "When to sync records to disk. With flush, netlogd syncs at each flush; with DURATION, at most DURATION "
             "after the flush. With either value, netlogd acknowledges clients' blocks only after the sync"},
    {0},
};

const nl_option output_file_rows[] = {
    {.name = "rotate_size",
     .type = NL_OPTION_SIZE,
     .minimum = 4 << 10,
     .initial = "(256m, or no limit with rotate_time=)",
     NL_OPTION_MEMBER(output_options, rotate_size),
     .help = "Numbered files: begin a new file when the current file reaches this size. If keep_size= is set, "
             "the default is at most 1/16 of keep_size="},
    {.name = "rotate_time",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     .initial = "(1/8 of keep=, if set)",
     NL_OPTION_MEMBER(output_options, rotate_ns),
     .help = "Numbered files: begin a new file at the first record after the current file has been open for DURATION"},
    {.name = "keep",
     .type = NL_OPTION_DURATION,
     .minimum = NL_NS_PER_SECOND,
     NL_OPTION_MEMBER(output_options, keep_ns),
     .help =
         "Numbered files: delete files that were last written more than DURATION ago. netlogd keeps the newest file, "
         "and files that a subscriber has not read yet"},
    {.name = "keep_size",
     .type = NL_OPTION_SIZE,
     .minimum = 64 << 10,
     NL_OPTION_MEMBER(output_options, keep_size),
     .help = "Numbered files: delete the oldest files while all files together are larger than SIZE. netlogd keeps the "
             "newest file, so SIZE should be several times rotate_size="},
    {.name = "keep_where",
     .value = "EXPRESSION",
     .set = set_keep_where,
     .get = get_keep_where,
     .help = "Numbered files with keep= or keep_size=: when netlogd deletes a file, it keeps the requests that match "
             "EXPRESSION, such as 'request.duration > 500ms or any(LVL <= Error)', in the file "
             "NAME-{N}.kept.SUFFIX. Write & as %26, or use the operator \"and\""},
    {.name = "keep_where_time",
     .type = NL_OPTION_DURATION,
     .minimum = NL_NS_PER_SECOND,
     NL_OPTION_MEMBER(output_options, keep_where_ns),
     .help = "Delete kept requests whose file was last written more than DURATION ago"},
    {.name = "keep_where_size",
     .type = NL_OPTION_SIZE,
     .minimum = 64 << 10,
     NL_OPTION_MEMBER(output_options, keep_where_size),
     .help = "Delete the oldest kept requests while all kept requests together are larger than SIZE"},
    {.name = "keep_where_id",
     .value = "FIELD,...",
     .initial = "(detected in each file)",
     NL_OPTION_MEMBER(output_options, keep_where_id),
     .help = "Fields that identify a request for keep_where="},
    {.name = "index",
     .value = "FIELD,...",
     .set = set_index,
     .initial = "(auto for numbered files, none for other files)",
     NL_OPTION_MEMBER(output_options, index),
     .help = "Index the values of these fields (at most 4), so that --where 'FIELD == VALUE' reads only parts of the "
             "file. The value auto selects TRACE.ID and the ID fields that netlogd infers from the records"},
    {.name = "seal",
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(output_options, seal_key),
     .help = "Numbered files: seal each file with the key in FILE, which netlogd --create-seal-key creates; netlogd "
             "--verify --seal-key then detects tampering"},
    {.name = "seal_time",
     .type = NL_OPTION_DURATION,
     .minimum = NL_NS_PER_SECOND,
     .initial = "15m",
     NL_OPTION_MEMBER(output_options, seal_ns),
     .help = "Maximum time between writing a record and sealing it"},
    {0},
};

const nl_option output_spool_rows[] = {
    {.name = "spool",
     .value = "DIRECTORY",
     .is_path = true,
     .set = set_spool,
     NL_OPTION_MEMBER(output_options, spool_root),
     .help =
         "Store records in DIRECTORY/DESTINATION.FORMAT/ until they are delivered. This option is required. netlogd "
         "creates missing directories. DIRECTORY must belong to netlogd's user or to root. Other users must not be "
         "able to write to it unless it has the sticky bit"},
    {.name = "spool_size",
     .type = NL_OPTION_SIZE,
     .minimum = 1 << 20,
     .initial = "1g",
     NL_OPTION_MEMBER(output_options, spool_size),
     .help = "Maximum size of the spool; while the spool is full, clients wait"},
    {0},
};

/* ---- parsing ---- */

/* Sets the path. DIR/ becomes a pattern of names. */
static void name_files(const nl_url *url, output_options *options)
{
    size_t size = strlen(url->path);
    bool directory = size > 0 && url->path[size - 1] == '/';
    const char *suffix = nl_format_get_info(options->format)->suffix;
    const char *packed = options->zstd_level > 0 && options->format != NL_FORMAT_NLB ? ".zst" : "";
    options->path = program_format("%s%s%s%s", url->path, directory ? "netlog-" OUTPUT_NUMBER : "",
                                   directory ? suffix : "", directory ? packed : "");
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
        return nl_error_set(NL_ERROR_INVALID, OUTPUT_NUMBER " is allowed only in the name of a file");
    if (number != NULL && strstr(number + 1, OUTPUT_NUMBER) != NULL)
        return nl_error_set(NL_ERROR_INVALID, OUTPUT_NUMBER " is allowed only once");
    if (options->zstd_level < 0 && options->format == NL_FORMAT_NLB)
        options->zstd_level = FORMAT_ZSTD_DEFAULT;
    return NL_OK;
}

/*
 * Sets the path to DIRECTORY/DESTINATION.FORMAT/spool-{N}.FORMAT. DESTINATION is the target, in which '_' replaces all
 * characters except letters, digits, dots and hyphens.
 */
static nl_status settle_spool(output_options *options)
{
    const char *directory = options->spool_root;
    if (directory == NULL)
        return nl_error_set(NL_ERROR_INVALID,
                            "missing option spool=DIRECTORY, where records wait until they are delivered");
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = options->kind->format;
    if (options->kind->numbered && options->format != NL_FORMAT_NLB)
        return nl_error_set(NL_ERROR_INVALID, "this destination requires format=nlb");
    if (options->zstd_level > 0 && options->format != NL_FORMAT_NLB)
        return nl_error_set(NL_ERROR_INVALID, "text in a spool cannot be compressed; use zstd=0");
    char name[TARGET_MAX + 1];
    snprintf(name, sizeof name, "%s", options->target);
    for (char *at = name; *at != '\0'; at++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *at) == NULL)
            *at = '_';
    const char *format = nl_format_name(options->format);
    options->spool = program_format("%s/%s.%s", directory, name, format);
    options->path = program_format("%s/spool-" OUTPUT_NUMBER ".%s", options->spool, format);
    options->numbered = true;
    options->rotate_size = options->spool_size / SPOOL_FILES;
    return NL_OK;
}

static nl_status check_numbered(const output_options *options, bool is_given, const char *what)
{
    if (!is_given || options->numbered)
        return NL_OK;
    return nl_error_set(NL_ERROR_INVALID,
                        "%s needs numbered files; put " OUTPUT_NUMBER " into the name, or end it in /", what);
}

static nl_status settle_keep_where(output_options *options)
{
    if (options->keep_where == NULL)
        return NL_OK;
    if (options->keep_ns == 0 && options->keep_size == 0)
        return nl_error_set(NL_ERROR_INVALID, "keep_where= needs keep= or keep_size=");
    if (options->seal_key != NULL)
        return nl_error_set(NL_ERROR_INVALID, "keep_where= cannot be used with seal=, because kept requests have no "
                                              "seals");
    const char *number = strstr(options->path, OUTPUT_NUMBER), *behind = number + strlen(OUTPUT_NUMBER);
    options->kept_path = program_format("%.*s.kept%s", (int)(behind - options->path), options->path, behind);
    return NL_OK;
}

/* Chooses sizes of files that are small compared to keep= and keep_size=, because netlogd deletes only whole files. */
static nl_status settle_rotation(output_options *options)
{
    bool rotates = options->rotate_size > 0 || options->rotate_ns > 0;
    if (check_numbered(options, rotates, "rotation") != NL_OK ||
        check_numbered(options, options->seal_key != NULL, "seal=") != NL_OK ||
        check_numbered(options, options->keep_ns > 0, "keep=") != NL_OK ||
        check_numbered(options, options->keep_size > 0, "keep_size=") != NL_OK)
        return NL_FAILED;
    if (options->numbered && !rotates)
        options->rotate_size = ROTATE_DEFAULT;
    uint64_t part = options->keep_size / KEPT_FILES;
    if (part > 0 && (options->rotate_size == 0 || (!rotates && options->rotate_size > part)))
        options->rotate_size = part;
    if (options->rotate_ns == 0)
        options->rotate_ns = options->keep_ns / KEPT_PERIODS;
    return settle_keep_where(options);
}

static nl_status settle(const nl_url *url, output_options *options)
{
    nl_status status = options->kind->deliver != NULL  ? settle_spool(options)
                       : url->scheme == NL_SCHEME_FILE ? settle_files(url, options)
                                                       : NL_OK;
    if (status != NL_OK)
        return status;
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = NL_FORMAT_ULM;
    options->zstd_level = options->zstd_level < 0 ? 0 : options->zstd_level;
    if (settle_rotation(options) != NL_OK)
        return NL_FAILED;
    return options->kind->check != NULL ? options->kind->check(url, options) : NL_OK;
}

static nl_status parse(const nl_url *url, output_options *options)
{
    options->kind = output_kind_of(url->scheme);
    if (options->kind == NULL)
        return nl_error_set(NL_ERROR_INVALID, "this URL cannot be an output");
    nl_url_rows tables[TABLES_MAX] = {{output_rows, options},
                                      {options->kind->deliver != NULL ? output_spool_rows : output_file_rows, options}};
    size_t count = 2;
    for (const nl_url_rows *own = options->kind->tables; own != NULL && own->rows != NULL; own++)
        tables[count++] = (nl_url_rows){own->rows, NULL};
    if (nl_url_read_options(url, tables) != NL_OK)
        return NL_FAILED;
    return settle(url, options);
}

nl_status output_options_parse(const char *text, output_options *options)
{
    *options = (output_options){.zstd_level = -1};
    nl_options_init(output_rows, options);
    nl_options_init(output_spool_rows, options);
    nl_options_init(output_file_rows, options);
    options->url = nl_url_parse_for(text, NL_URL_OUTPUT);
    if (options->url == NULL)
        return NL_FAILED;
    /* The plain name of a file may contain '?'. */
    size_t size = options->url->option_count > 0 ? strcspn(text, "?") : strlen(text);
    bool has_secret = options->url->scheme == NL_SCHEME_NATS; /* the URL may contain a password */
    options->target = has_secret ? program_format("nats://%s/%s", options->url->host, options->url->path)
                                 : program_format("%.*s", (int)size, text);
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
    request_filter_free(options->keep_where);
    free(options->target);
    free(options->path);
    free(options->kept_path);
    free(options->spool);
    *options = (output_options){0};
}

output_options output_options_of_kept(const output_options *options)
{
    return (output_options){.path = options->kept_path,
                            .numbered = true,
                            .keep_ns = options->keep_where_ns,
                            .keep_size = options->keep_where_size};
}

bool output_options_same_target(const output_options *a, const output_options *b)
{
    /* Two different patterns may have the same journal (".streams"), and thus the same target. */
    char *first = output_file_name_beside(a, ".streams"), *second = output_file_name_beside(b, ".streams");
    bool same = first == NULL || second == NULL ? first == second : strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}
