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
    &strace_importer, &perf_importer,
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

const importer_kind *importer_kind_detect(const char *data, size_t size)
{
    for (size_t i = 0; importer_kinds[i] != NULL; i++)
        if (importer_kinds[i]->detect != NULL && importer_kinds[i]->detect(data, size))
            return importer_kinds[i];
    return NULL;
}
