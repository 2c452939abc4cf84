/* Which kind of output a scheme means. */
#include "config.h"

#include "kind.h"

const output_kind output_kind_file = {.name = "file"};

const output_kind *output_kind_of(nl_scheme scheme)
{
    static const struct {
        nl_scheme scheme;
        const output_kind *kind;
    } kinds[] = {
        {NL_SCHEME_STDIO, &output_kind_file},     {NL_SCHEME_FILE, &output_kind_file},
        {NL_SCHEME_NETLOG, &output_kind_forward}, {NL_SCHEME_NETLOGS, &output_kind_forward},
        {NL_SCHEME_UNIX, &output_kind_forward},   {NL_SCHEME_SYSLOG, &output_kind_syslog},
        {NL_SCHEME_NATS, &output_kind_nats},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].scheme == scheme)
            return kinds[i].kind;
    return NULL;
}
