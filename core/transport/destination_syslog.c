/*
 * The syslog(3) destination. Each record is one message, whose priority depends on the record's level. Ident and
 * facility belong to the process, so the log that was opened last sets them.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/error.h"
#include "base/memory.h"

#define SYSLOG_NAMES 1 /* for the table of facility names */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>

typedef struct syslog_destination {
    nl_destination base;
    int facility;
} syslog_destination;

/* openlog keeps the pointer, so the name must outlive every log. As in openlog, no lock protects the pointer. */
static char *ident;

static int priority_of(nl_level level)
{
    static const int priorities[] = {
        [NL_LEVEL_NONE] = LOG_INFO, [NL_EMERGENCY] = LOG_EMERG, [NL_ALERT] = LOG_ALERT,     [NL_ERROR] = LOG_ERR,
        [NL_WARNING] = LOG_WARNING, [NL_AUTH] = LOG_NOTICE,     [NL_SECURITY] = LOG_NOTICE, [NL_USAGE] = LOG_INFO,
        [NL_SYSTEM] = LOG_INFO,     [NL_IMPORTANT] = LOG_INFO,  [NL_DEBUG] = LOG_DEBUG,
    };
    return priorities[level];
}

static nl_status syslog_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                              size_t *written)
{
    syslog_destination *s = (syslog_destination *)destination;
    while (*written < size) {
        const char *line = data + *written;
        const char *newline = memchr(line, '\n', size - *written);
        size_t length = newline != NULL ? (size_t)(newline - line) : size - *written;
        syslog(s->facility | priority_of(level), "%.*s", (int)length, line);
        *written += length + (newline != NULL);
    }
    return NL_OK;
}

static nl_status syslog_close(nl_destination *destination, bool keep)
{
    (void)keep;
    free(destination);
    return NL_OK;
}

static const nl_destination_kind syslog_kind = {.write = syslog_write, .close = syslog_close};

static bool find_facility(const char *name, int *facility)
{
    *facility = LOG_USER;
    if (*name == '\0')
        return true;
    for (const CODE *code = facilitynames; code->c_name != NULL; code++)
        if (strcasecmp(code->c_name, name) == 0) {
            *facility = code->c_val;
            return true;
        }
    return false;
}

nl_destination *nl_syslog_destination_open(const nl_url *url, const nl_destination_options *options)
{
    int facility;
    if (options->format == NL_FORMAT_NLB) {
        nl_error_set(NL_ERROR_UNSUPPORTED, "open %s: syslog accepts only text; use format=ulm", url->text);
        return NULL;
    }
    if (!find_facility(url->path, &facility)) {
        nl_error_set(NL_ERROR_UNSUPPORTED, "open %s: unknown syslog facility \"%s\"", url->text, url->path);
        return NULL;
    }
    syslog_destination *s = nl_memory_check(calloc(1, sizeof *s));
    char *named = options->ident != NULL ? nl_memory_check(strdup(options->ident)) : NULL;
    if (s == NULL || (options->ident != NULL && named == NULL)) {
        free(s);
        free(named);
        return NULL;
    }
    s->base.kind = &syslog_kind;
    s->facility = facility;
    if (named != NULL) {
        char *before = ident;
        ident = named;
        openlog(ident, LOG_PID, facility);
        free(before);
    }
    return &s->base;
}
