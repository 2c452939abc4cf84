#define _GNU_SOURCE /* program_invocation_short_name, asprintf */

#include "nl_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- destinations ---- */

/* Returns the URL with which nl_open opens the destination of a program, or NULL if memory runs out. */
static char *nl_destination(const char *url)
{
    const char *set = getenv("NL_DEST");
    if (set == NULL || *set == '\0')
        set = getenv("NETLOGGER_DEST");
    if (set != NULL && *set != '\0')
        url = set;
    if (url == NULL || *url == '\0')
        url = "-";
    if (strcmp(url, "-") == 0)
        url = "/dev/fd/1";
    else if (strcmp(url, "&") == 0)
        url = "/dev/fd/2";
    if (strchr(url, '?') != NULL)
        return strdup(url);
    char *changed = NULL;
    const bool is_file = strncmp(url, "file:", 5) == 0;
    if (!is_file && strstr(url, "://") != NULL)
        return strdup(url);
    if (asprintf(&changed, "%s%s?format=bp&append=yes", is_file ? "" : "file:", url) < 0)
        return NULL;
    return changed;
}

/* ---- logs ---- */

static void log_free(NL_log_T log)
{
    nl_record_free(log->constants);
    nl_record_free(log->record);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

NL_log_T NL_open(const char *url)
{
    NL_log_T log = calloc(1, sizeof *log);
    if (log == NULL)
        return NULL;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&log->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    log->level = NL_LVL_INFO;
    log->constants = nl_record_new();
    log->record = nl_record_new();
    if (log->constants == NULL || log->record == NULL) {
        log_free(log);
        return NULL;
    }
    NL_reopen(log, url);
    return log;
}

int NL_reopen(NL_log_T log, const char *url)
{
    if (log == NULL || log->log != NULL)
        return -1;
    char *destination = nl_destination(url);
    if (destination != NULL)
        log->log = nl_open(program_invocation_short_name, destination);
    free(destination);
    return log->log != NULL ? 0 : -1;
}

int NL_is_active(NL_log_T log)
{
    return log != NULL && log->log != NULL;
}

void NL_set_level(NL_log_T log, NL_level_t level)
{
    if (log != NULL)
        __atomic_store_n(&log->level, level, __ATOMIC_RELAXED);
}

NL_level_t NL_get_level(NL_log_T log)
{
    return log != NULL ? __atomic_load_n(&log->level, __ATOMIC_RELAXED) : NL_LVL_NOLOG;
}

void NL_flush(NL_log_T log)
{
    if (NL_is_active(log))
        nl_flush(log->log);
}

void NL_close(NL_log_T log)
{
    if (log == NULL)
        return;
    if (log->summ != NULL)
        NL_summ_remove_log(log->summ, log);
    if (log->log != NULL)
        nl_close(log->log);
    log_free(log);
}

/* ---- levels ---- */

/* Indexed by NL_level_t. If a level is NL_LEVEL_NONE here, the record gets the name as the text of its level. */
static const struct {
    nl_level level;
    const char *name;
} level_names[] = {{NL_LEVEL_NONE, ""},       {NL_EMERGENCY, "FATAL"},   {NL_ERROR, "ERROR"},
                   {NL_WARNING, "WARN"},      {NL_USAGE, "INFO"},        {NL_DEBUG, "DEBUG"},
                   {NL_LEVEL_NONE, "DEBUG1"}, {NL_LEVEL_NONE, "DEBUG2"}, {NL_LEVEL_NONE, "DEBUG3"},
                   {NL_LEVEL_NONE, "USER"}};

const char *NL_get_level_name(NL_level_t level)
{
    return (unsigned)level < sizeof level_names / sizeof level_names[0] ? level_names[level].name : "";
}

static void set_level(nl_record *record, NL_level_t level)
{
    const char *name = NL_get_level_name(level);
    nl_record_set_level(record, *name != '\0' ? level_names[level].level : NL_LEVEL_NONE);
    if (record->level == NL_LEVEL_NONE && *name != '\0')
        record->level_text = (nl_string){name, strlen(name)};
}

/* ---- formats ---- */

static void add_text(nl_record *record, const char *name, const char *text)
{
    if (text == NULL)
        text = "";
    if (strcmp(name, "HOST") == 0)
        nl_record_set_host(record, text, strlen(text));
    else if (strcmp(name, "PROG") == 0)
        nl_record_set_prog(record, text, strlen(text));
    else
        nl_record_add_string(record, name, text, strlen(text));
}

/* Adds the argument of a type to the record. Returns false if the type is unknown. */
static bool add_argument(nl_record *record, const char *name, char type, va_list *arguments)
{
    switch (type) {
    case 'i':
        nl_record_add_int(record, name, va_arg(*arguments, int));
        return true;
    case 'l':
        nl_record_add_int(record, name, va_arg(*arguments, long long));
        return true;
    case 'd':
    case 't':
        nl_record_add_double(record, name, va_arg(*arguments, double));
        return true;
    case 's':
        add_text(record, name, va_arg(*arguments, const char *));
        return true;
    default:
        return false;
    }
}

/* Adds the fields of the format to the record. Returns false if the format is invalid. */
static bool add_arguments(nl_record *record, const char *format, va_list *arguments)
{
    enum { NAME_SIZE = 256 };
    char name[NAME_SIZE];
    const char *at = format != NULL ? format : "";
    while (at += strspn(at, " \t\r\n,"), *at != '\0') {
        size_t size = strcspn(at, "=:");
        if (size == 0 || size >= sizeof name || at[size] == '\0')
            return false;
        memcpy(name, at, size);
        name[size] = '\0';
        if (!add_argument(record, name, at[size + 1], arguments))
            return false;
        at += size + 2;
    }
    return true;
}

/* ---- events ---- */

NL_result_t nl_classic_set_constants(NL_log_T log, const char *format, va_list *arguments)
{
    if (!NL_is_active(log) || pthread_mutex_lock(&log->lock) != 0)
        return LOST;
    nl_record_clear(log->constants);
    const bool valid = add_arguments(log->constants, format, arguments);
    pthread_mutex_unlock(&log->lock);
    return valid ? WRITTEN : LOST;
}

NL_result_t NL_set_const(NL_log_T log, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (format == NULL)
        format = va_arg(arguments, const char *);
    NL_result_t result = nl_classic_set_constants(log, format, &arguments);
    va_end(arguments);
    return result;
}

NL_result_t nl_classic_write(NL_log_T log, int64_t time_ns, NL_level_t level, const char *event, const char *format,
                             va_list *arguments)
{
    if (!NL_is_active(log) || event == NULL)
        return LOST;
    if (level > NL_get_level(log))
        return WRITTEN;
    if (pthread_mutex_lock(&log->lock) != 0)
        return LOST;
    nl_record *record = log->record;
    nl_record_copy(record, log->constants);
    nl_record_set_event(record, event, strlen(event));
    nl_record_set_time(record, time_ns);
    const bool valid = add_arguments(record, format, arguments);
    set_level(record, level);
    nl_status status = valid ? nl_write_record(log->log, record) : NL_FAILED;
    pthread_mutex_unlock(&log->lock);
    return status != NL_FAILED ? WRITTEN : LOST;
}

NL_result_t nl_classic_write_at(NL_log_T log, int64_t time_ns, NL_level_t level, const char *event, const char *format,
                                ...)
{
    va_list arguments;
    va_start(arguments, format);
    NL_result_t result = nl_classic_write(log, time_ns, level, event, format, &arguments);
    va_end(arguments);
    return result;
}

NL_result_t NL_write(NL_log_T log, NL_level_t level, const char *event, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    NL_result_t result = nl_classic_write(log, 0, level, event, format, &arguments);
    va_end(arguments);
    return result;
}

NL_result_t NL_write_ts(NL_log_T log, struct timeval *time, NL_level_t level, const char *event, const char *format,
                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    int64_t time_ns = time != NULL ? time->tv_sec * INT64_C(1000000000) + time->tv_usec * INT64_C(1000) : 0;
    NL_result_t result = nl_classic_write(log, time_ns, level, event, format, &arguments);
    va_end(arguments);
    return result;
}

/* ---- identifiers and errors ---- */

char *NL_get_ipaddr(void)
{
    struct ifaddrs *all = NULL;
    char text[INET_ADDRSTRLEN] = "127.0.0.1";
    if (getifaddrs(&all) != 0)
        return NULL;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, text, sizeof text);
        break;
    }
    freeifaddrs(all);
    return strdup(text);
}

int NL_get_guid(char **id)
{
    unsigned char b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return -1;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 4122, version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    return asprintf(id, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
                    b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

int NL_get_someid(char **id)
{
    return NL_get_guid(id);
}

const char *NL_err_str(void)
{
    return nl_error_message();
}
