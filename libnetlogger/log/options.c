#include "config.h"

#include "log/options.h"

#include "base/environment_value.h"
#include "base/error.h"
#include "record/number.h"
#include "transport/writer_internal.h"
#include "record/format.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    RING_DEFAULT = 1 << 20,
    RING_MIN = 64 << 10,
    RING_MAX = 1 << 30,
    SPOOL_DEFAULT = 256 << 20,
    SPOOL_MIN = 1 << 20,
    SYNC_DEFAULT_S = 1,
    BLOCK_DEFAULT_S = 10,
    CLOCK_DEFAULT_S = 60,
};

/* "block", "newest", "oldest", or a level: events less urgent than it are dropped first. */
static bool read_policy(const char *value, nl_ring_policy *policy)
{
    static const char *const names[] = {"block", "newest", "oldest"};
    for (unsigned i = 0; i < 3; i++)
        if (strcasecmp(value, names[i]) == 0) {
            policy->kind = (nl_policy)i;
            return true;
        }
    policy->kind = NL_POLICY_LEVEL;
    policy->keep_level = nl_level_parse(value, strlen(value));
    return policy->keep_level != NL_LEVEL_NONE;
}

static bool read_seconds(const char *value, int64_t *time_ns)
{
    double seconds;
    if (!nl_number_parse_double((nl_string){value, strlen(value)}, &seconds) || !(seconds >= 0 && seconds <= 1e9))
        return false;
    *time_ns = (int64_t)(seconds * 1e9);
    return true;
}

#define CLOCK_LEAST_NS (NL_NS_PER_SECOND / 10)

/* "no", or seconds. */
static bool read_clock(const char *value, int64_t *every_ns)
{
    *every_ns = 0;
    if (strcasecmp(value, "no") == 0 || strcasecmp(value, "off") == 0)
        return true;
    return read_seconds(value, every_ns) && (*every_ns == 0 || *every_ns >= CLOCK_LEAST_NS);
}

#define IDLE_LEAST_NS (NL_NS_PER_SECOND / 1000)
#define IDLE_DEFAULT_NS (NL_NS_PER_SECOND / 50)

static bool read_idle(const char *value, int64_t *idle_ns)
{
    return read_seconds(value, idle_ns) && *idle_ns >= IDLE_LEAST_NS;
}

/* Of logs whose URL does not say. What goes to a collector is compared with what others have sent there. */
static int64_t default_clock(bool collector)
{
    const char *named = nl_environment_value("NETLOGGER_CLOCK");
    int64_t every_ns;
    if (named != NULL && read_clock(named, &every_ns))
        return every_ns;
    return collector ? CLOCK_DEFAULT_S * NL_NS_PER_SECOND : 0;
}

static bool read_ring_size(const char *value, size_t *size)
{
    size_t wanted;
    if (!nl_size_parse(value, &wanted) || wanted > RING_MAX)
        return false;
    for (*size = RING_MIN; *size < wanted;)
        *size *= 2;
    return true;
}

static bool read_spool_policy(const char *value, bool *oldest)
{
    *oldest = strcasecmp(value, "oldest") == 0;
    return *oldest || strcasecmp(value, "stop") == 0;
}

/* "never", "flush", or seconds. */
static bool read_sync(const char *value, nl_log_options *options)
{
    options->spool_synced = strcasecmp(value, "never") != 0;
    options->spool_sync_ns = INT64_MAX;
    return !options->spool_synced || strcasecmp(value, "flush") == 0 || read_seconds(value, &options->spool_sync_ns);
}

/* What the values of an option are, as messages say it. */
static const char *values_of(const char *name)
{
    static const struct {
        const char *name, *values;
    } all[] = {
        {"policy", "block, newest, oldest, or a level's name: " NL_LEVEL_NAMES},
        {"block", "seconds, from 0"},
        {"ring", "a size of at most 1g, such as 64k or 1m"},
        {"spool", "a folder"},
        {"spool_size", "a size of at least 1m, such as 256m"},
        {"spool_full", "stop or oldest"},
        {"fsync", "never, flush, or seconds, from 0"},
        {"backup", "a destination"},
        {"activation", "a file"},
        {"clock", "no, or seconds, from 0.1"},
        {"idle", "seconds, from 0.001"},
    };
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].values;
    return "";
}

/* NL_OK; NL_END when it is none of ours; NL_FAILED when the value is none. */
static nl_status read_own(const nl_url_option *option, nl_log_options *options)
{
    const char *name = option->name, *value = option->value;
    bool good;
    if (strcmp(name, "policy") == 0)
        good = read_policy(value, &options->policy);
    else if (strcmp(name, "block") == 0)
        good = read_seconds(value, &options->policy.block_ns);
    else if (strcmp(name, "ring") == 0)
        good = read_ring_size(value, &options->ring_size);
    else if (strcmp(name, "spool") == 0)
        good = *(options->spool = value) != '\0';
    else if (strcmp(name, "spool_size") == 0)
        good = nl_size_parse(value, &options->spool_size) && options->spool_size >= SPOOL_MIN;
    else if (strcmp(name, "spool_full") == 0)
        good = read_spool_policy(value, &options->spool_oldest);
    else if (strcmp(name, "fsync") == 0)
        good = read_sync(value, options);
    else if (strcmp(name, "backup") == 0)
        good = *(options->backup = value) != '\0';
    else if (strcmp(name, "activation") == 0)
        good = *(options->activation = value) != '\0';
    else if (strcmp(name, "clock") == 0)
        good = read_clock(value, &options->clock_ns);
    else if (strcmp(name, "idle") == 0)
        good = read_idle(value, &options->idle_ns);
    else
        return NL_END;
    return good ? NL_OK
                : nl_error_set(NL_ERROR_INVALID, "\"%s\" is no value for option %s, which is %s", value, name,
                               values_of(name));
}

nl_status nl_log_options_read(nl_log_options *options, const nl_url *url)
{
    bool collector =
        url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS || url->scheme == NL_SCHEME_UNIX;
    *options = (nl_log_options){
        .policy = {.kind = collector ? NL_POLICY_NEWEST : NL_POLICY_BLOCK,
                   .block_ns = BLOCK_DEFAULT_S * NL_NS_PER_SECOND},
        .ring_size = RING_DEFAULT,
        .spool_size = SPOOL_DEFAULT,
        .spool_synced = true,
        .spool_sync_ns = SYNC_DEFAULT_S * NL_NS_PER_SECOND,
        .clock_ns = default_clock(collector),
        .idle_ns = IDLE_DEFAULT_NS,
    };
    for (size_t i = 0; i < url->option_count; i++) {
        nl_status status = read_own(&url->options[i], options);
        if (status == NL_END)
            status = nl_writer_read_option(url, &url->options[i], &options->writer);
        if (status == NL_END)
            nl_error_set(NL_ERROR_INVALID,
                         "unknown option \"%s\": policy, block, ring, spool, spool_size, spool_full, fsync, backup, "
                         "activation, clock, idle, append, format, zstd and timeout are known%s",
                         url->options[i].name, url->scheme == NL_SCHEME_NETLOGS ? ", and ca, cert, key and name" : "");
        if (status != NL_OK)
            return nl_error_prepend("open %s", url->text);
    }
    nl_format *format = &options->writer.format;
    if (*format == NL_FORMAT_UNKNOWN && url->scheme == NL_SCHEME_FILE)
        *format = nl_format_of_name(url->path);
    if (*format == NL_FORMAT_UNKNOWN)
        *format = NL_FORMAT_ULM;
    return NL_OK;
}
