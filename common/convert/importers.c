/* The table of importers. */
#include "config.h"

#include "record/format.h"
#include "convert/convert.h"

#include <string.h>
#include <strings.h>

/*
 * Detection tries the formats in this order, because the first formats are detected most reliably: first_importers, the
 * formats of the library, last_importers.
 */
static const importer_kind *const first_importers[] = {
    &xml_importer,     &otlp_importer, &otlp_proto_importer, &chrome_importer,
    &journal_importer, &json_importer, &syslog_importer,     &multiline_importer,
};
static const importer_kind *const last_importers[] = {
    &csv_importer, &strace_importer, &perf_importer, &ftrace_importer, &audit_importer, &pairs_importer, &ctf_importer,
};

enum {
    OWN_COUNT = NL_FORMAT_COUNT - 1, /* the formats of the library start at 1 */
    FIRST_COUNT = sizeof first_importers / sizeof first_importers[0],
    LAST_COUNT = sizeof last_importers / sizeof last_importers[0],
};

const importer_kind *importer_kind_at(size_t index)
{
    if (index < FIRST_COUNT)
        return first_importers[index];
    index -= FIRST_COUNT;
    if (index < OWN_COUNT)
        return netlogger_importer_kind((nl_format)(index + 1));
    index -= OWN_COUNT;
    return index < LAST_COUNT ? last_importers[index] : NULL;
}

const importer_kind *importer_kind_find(const char *name)
{
    const importer_kind *kind = importer_kind_at(0);
    for (size_t i = 0; kind != NULL && strcasecmp(kind->name, name) != 0;)
        kind = importer_kind_at(++i);
    return kind;
}

static const importer_kind *importers_detect(const importer_kind *const *kinds, size_t count, const char *data,
                                             size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (kinds[i]->detect != NULL && kinds[i]->detect(data, size))
            return kinds[i];
    return NULL;
}

const importer_kind *importer_kind_detect(const char *data, size_t size)
{
    const importer_kind *kind = importers_detect(first_importers, FIRST_COUNT, data, size);
    if (kind != NULL)
        return kind;
    if (nl_format_detect(data, size) != NL_FORMAT_UNKNOWN)
        return netlogger_importer_kind(NL_FORMAT_UNKNOWN);
    return importers_detect(last_importers, LAST_COUNT, data, size);
}

const importer_kind *importer_kind_detect_directory(const char *path)
{
    const importer_kind *kind = importer_kind_at(0);
    for (size_t i = 0; kind != NULL && (kind->detect_path == NULL || !kind->detect_path(path));)
        kind = importer_kind_at(++i);
    return kind;
}
