/* The table of formats. */
#include "config.h"

#include "convert/convert.h"

#include <string.h>
#include <strings.h>

/* clang-format off */
const exporter_kind *const exporter_kinds[] = {
    &ulm_exporter, &bp_exporter, &nlb_exporter, &json_exporter, &csv_exporter,
#ifdef HAVE_LIBXML2
    &xml_exporter,
#endif
    &otlp_exporter,
#ifdef HAVE_ANALYSIS
    &spans_exporter, &chrome_exporter, &perfetto_exporter,
#endif
    NULL,
};

/* In the order in which they are asked whether an input is theirs: the most certain first. */
const importer_kind *const importer_kinds[] = {
#ifdef HAVE_LIBXML2
    &xml_importer,
#endif
    &otlp_importer, &chrome_importer, &journal_importer,
    &json_importer, &ulm_importer, &bp_importer, &nlb_importer, &csv_importer,
    &strace_importer, &perf_importer, &ftrace_importer,
#ifdef HAVE_BABELTRACE
    &ctf_importer,
#endif
    NULL,
};
/* clang-format on */

const exporter_kind *exporter_kind_find(const char *name)
{
    for (size_t i = 0; exporter_kinds[i] != NULL; i++)
        if (strcasecmp(exporter_kinds[i]->name, name) == 0)
            return exporter_kinds[i];
    return NULL;
}

const importer_kind *importer_kind_find(const char *name)
{
    for (size_t i = 0; importer_kinds[i] != NULL; i++)
        if (strcasecmp(importer_kinds[i]->name, name) == 0)
            return importer_kinds[i];
    return NULL;
}

const char *format_missing(const char *name)
{
    (void)name;
#ifndef HAVE_LIBXML2
    if (strcasecmp(name, "xml") == 0)
        return "libxml2";
#endif
#ifndef HAVE_BABELTRACE
    if (strcasecmp(name, "ctf") == 0)
        return "libbabeltrace2";
#endif
#ifndef HAVE_ANALYSIS
    if (strcasecmp(name, "chrome") == 0 || strcasecmp(name, "perfetto") == 0 || strcasecmp(name, "otlp-spans") == 0)
        return "glib";
#endif
    return NULL;
}

const importer_kind *importer_kind_detect(const char *data, size_t size)
{
    for (size_t i = 0; importer_kinds[i] != NULL; i++)
        if (importer_kinds[i]->detect != NULL && importer_kinds[i]->detect(data, size))
            return importer_kinds[i];
    return NULL;
}

const importer_kind *importer_kind_detect_folder(const char *path)
{
    for (size_t i = 0; importer_kinds[i] != NULL; i++)
        if (importer_kinds[i]->detect_path != NULL && importer_kinds[i]->detect_path(path))
            return importer_kinds[i];
    return NULL;
}
