#include "config.h"

#include "certificate_watch.h"

#include "output/outputs.h"
#include "output/options.h"
#include "server.h"
#include "transport/url.h"

#include <inttypes.h>
#include <time.h>

enum { CERTIFICATE_CHECK_S = 24 * 3600, DAY_S = 24 * 3600 };

static struct {
    const settings *checked; /* the settings at the latest check */
    int64_t next_ns;
    int64_t first_s; /* earliest expiry, in seconds since 1970; INT64_MAX if there is no certificate */
} watch = {.first_s = INT64_MAX};

/* Updates the earliest expiry. Warns if the certificate expires soon. `of` is the URL of the listener or output that
 * uses the certificate. */
static void check_certificate(const char *of, int64_t expiry_s)
{
    char date[sizeof "2026-01-31T12:00:00Z"] = "";
    int64_t left_s = expiry_s - time(NULL);
    watch.first_s = expiry_s < watch.first_s ? expiry_s : watch.first_s;
    if (expiry_s == INT64_MAX || left_s >= (int64_t)CERTIFICATE_WARN_DAYS * DAY_S)
        return;
    struct tm end;
    time_t expiry = expiry_s;
    if (gmtime_r(&expiry, &end) != NULL)
        strftime(date, sizeof date, "%FT%TZ", &end);
    nl_write(server_log(), NL_WARNING, "Netlogd.CertificateExpires", "OF=%s EXPIRES=%s DAYS=%" PRId64, of, date,
             left_s / DAY_S);
}

static void check_listening(const listening *l)
{
    if (l->tls != NULL)
        check_certificate(l->url, nl_tls_get_expiry(l->tls));
}

static void check_outputs(void)
{
    for (size_t i = 0; outputs_get(i) != NULL; i++) {
        const output_options *o = output_get_options(outputs_get(i));
        const char *path = o->url != NULL ? nl_url_option_value(o->url, "cert") : NULL;
        if (path != NULL)
            check_certificate(o->target, nl_tls_read_expiry(path));
    }
}

void certificate_watch_tick(int64_t now_ns)
{
    const settings *s = server_settings();
    if (s == watch.checked && now_ns < watch.next_ns)
        return;
    watch.checked = s;
    watch.next_ns = now_ns + (int64_t)CERTIFICATE_CHECK_S * NL_NS_PER_SECOND;
    watch.first_s = INT64_MAX;
    for (size_t i = 0; i < s->listen_count; i++)
        check_listening(&s->listen[i]);
    check_listening(&s->metrics_place);
    check_outputs();
}

uint64_t certificate_watch_get_first(void)
{
    return watch.first_s == INT64_MAX || watch.first_s < 0 ? 0 : (uint64_t)watch.first_s;
}
