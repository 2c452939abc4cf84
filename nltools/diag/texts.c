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

char *text_program(const place *p, const char *process, const char *host)
{
    const char *program = process != NULL ? process : p->program, *name = host != NULL ? host : "";
    if (*program == '\0')
        program = p->kind == PLACE_SPAN ? p->span : p->to;
    return g_strdup_printf("%s%s%s", program, *name != '\0' ? " on " : "", name);
}

char *text_of_place(const place *p, const char *process, const char *host)
{
    const bool has_host = host != NULL && *host != '\0'; /* the traces of a single program may not name the host */
    const char *program = process != NULL ? process : p->program, *on = has_host ? " on " : "",
               *name = has_host ? host : "", *of = *program != '\0' ? " of " : "",
               *from_of = *p->from_program != '\0' ? " of " : "";
    if (p->kind == PLACE_SPAN && *p->span == '\0')
        return g_strdup_printf("%s%s%s", program, on, name);
    if (p->kind == PLACE_SPAN)
        return g_strdup_printf("%s%s%s%s%s%s%s", p->span, of, program, p->has_only_served ? " with " : "",
                               p->has_only_served ? p->server_field : "", on, name);
    if (p->kind == PLACE_UNKNOWN)
        return g_strdup_printf("the time before %s%s%s%s%s", p->to, of, program, on, name);
    if (p->program == p->from_program)
        return g_strdup_printf("%s -> %s%s%s%s%s", p->from, p->to, of, program, on, name);
    return g_strdup_printf("%s%s%s -> %s%s%s%s%s", p->from, from_of, p->from_program, p->to, of, program, on, name);
}

char *text_process_place(const visits *v, uint32_t number, const char *process, const char *host)
{
    return text_of_place(place_at(v, number), process, host);
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
