/* The table of exporters. The file is separate, so that programs that only read do not link the exporters. */
#include "config.h"

#include "record/format.h"
#include "convert/convert.h"

#include <string.h>
#include <strings.h>

static const exporter_kind *const exporters[] = {
    &json_exporter,       &csv_exporter,   &xml_exporter,    &otlp_exporter,
    &otlp_proto_exporter, &spans_exporter, &chrome_exporter, &perfetto_exporter,
};

enum { OWN_COUNT = NL_FORMAT_COUNT - 1 /* the formats of the library start at 1 */ };

const exporter_kind *exporter_kind_at(size_t index)
{
    if (index < OWN_COUNT)
        return netlogger_exporter_kind((nl_format)(index + 1));
    index -= OWN_COUNT;
    return index < sizeof exporters / sizeof exporters[0] ? exporters[index] : NULL;
}

const exporter_kind *exporter_kind_find(const char *name)
{
    const exporter_kind *kind = exporter_kind_at(0);
    for (size_t i = 0; kind != NULL && strcasecmp(kind->name, name) != 0;)
        kind = exporter_kind_at(++i);
    return kind;
}
