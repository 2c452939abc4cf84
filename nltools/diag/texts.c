#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "diag/findings.h"

/* text_ns writes times of at least LONG_NS in hours and minutes. */
#define LONG_NS 3600e9

char *text_ns(double ns)
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    if (fabs(ns) >= LONG_NS) {
        int64_t minutes = (int64_t)llround(fabs(ns) / 60e9);
        return g_strdup_printf("%s%" PRId64 " h %" PRId64 " min", ns < 0 ? "-" : "", minutes / 60, minutes % 60);
    }
    size_t u = 0;
    while (u < G_N_ELEMENTS(units) - 1 && fabs(ns) < units[u].ns)
        u++;
    double value = ns / units[u].ns;
    return g_strdup_printf("%.*f %s", fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0, value, units[u].unit);
}

char *text_share(double share)
{
    if (share > 0 && share < 0.0005)
        return g_strdup("<0.1 %");
    return g_strdup_printf("%.*f %%", share < 0.0095 ? 1 : 0, 100 * share);
}

bool host_is_value(const visits *v, const place *p, const char *host)
{
    for (guint n = 0; p->has_value_hosts && n < p->sites->len; n++)
        if (site_at(v, g_array_index(p->sites, uint32_t, n))->host == host)
            return true;
    return false;
}

char *text_host(const visits *v, const place *p, const char *host)
{
    return host_is_value(v, p, host) ? g_strdup_printf("%s=%s", p->server_field, host) : g_strdup(host);
}

/* Returns the phrase that names the host after a place or a program, such as " on HOST", or "". The caller frees it
 * with g_free. */
static char *text_on_host(const visits *v, const place *p, const char *host)
{
    if (host == NULL || *host == '\0') /* the traces of a single program may not name the host */
        return g_strdup("");
    char *name = text_host(v, p, host), *text = g_strconcat(host_is_value(v, p, host) ? " with " : " on ", name, NULL);
    g_free(name);
    return text;
}

char *text_program(const visits *v, const place *p, const char *process, const char *host)
{
    const char *program = process != NULL ? process : p->program;
    if (*program == '\0')
        program = p->kind == PLACE_SPAN ? p->span : p->to;
    char *on = text_on_host(v, p, host), *text = g_strconcat(program, on, NULL);
    g_free(on);
    return text;
}

char *text_of_place(const visits *v, const place *p, const char *process, const char *host)
{
    const char *program = process != NULL ? process : p->program, *of = *program != '\0' ? " of " : "",
               *from_of = *p->from_program != '\0' ? " of " : "";
    char *on = text_on_host(v, p, host), *text;
    const bool names_field = p->has_only_served && !(host != NULL && host_is_value(v, p, host));
    if (p->kind == PLACE_SPAN && *p->span == '\0')
        text = g_strconcat(program, on, NULL);
    else if (p->kind == PLACE_SPAN)
        text = g_strconcat(p->span, of, program, names_field ? " with " : "", names_field ? p->server_field : "", on,
                           NULL);
    else if (p->kind == PLACE_UNKNOWN)
        text = g_strconcat("the time before ", p->to, of, program, on, NULL);
    else if (p->program == p->from_program)
        text = g_strconcat(p->from, " -> ", p->to, of, program, on, NULL);
    else
        text = g_strconcat(p->from, from_of, p->from_program, " -> ", p->to, of, program, on, NULL);
    g_free(on);
    return text;
}

char *text_process_place(const visits *v, uint32_t number, const char *process, const char *host)
{
    return text_of_place(v, place_at(v, number), process, host);
}

char *text_place(const visits *v, uint32_t number, const char *host)
{
    return text_process_place(v, number, NULL, host);
}

char *text_place_from(const visits *v, uint32_t number, const char *from_host)
{
    const place *p = place_at(v, number);
    return g_strdup_printf("%s%s%s on %s -> %s%s%s", p->from, *p->from_program != '\0' ? " of " : "", p->from_program,
                           from_host, p->to, *p->program != '\0' ? " of " : "", p->program);
}
