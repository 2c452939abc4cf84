#include "config.h"

#include <netlogger.h>

#include <string.h>
#include <strings.h>

typedef struct name {
    const char *text;
    size_t size;
} name;

#define NAME(literal)                                                                                                  \
    {                                                                                                                  \
        literal, sizeof literal - 1                                                                                    \
    }

/* Indexed by nl_level. BP's own names stand beside ULM's; where BP has none ULM's serves. */
static const struct {
    name ulm;
    name bp;
} names[] = {
    [NL_LEVEL_NONE] = {NAME(""), NAME("")},
    [NL_EMERGENCY] = {NAME("Emergency"), NAME("Fatal")},
    [NL_ALERT] = {NAME("Alert"), NAME("Alert")},
    [NL_ERROR] = {NAME("Error"), NAME("Error")},
    [NL_WARNING] = {NAME("Warning"), NAME("Warn")},
    [NL_AUTH] = {NAME("Auth"), NAME("Auth")},
    [NL_SECURITY] = {NAME("Security"), NAME("Security")},
    [NL_USAGE] = {NAME("Usage"), NAME("Info")},
    [NL_SYSTEM] = {NAME("System"), NAME("System")},
    [NL_IMPORTANT] = {NAME("Important"), NAME("Important")},
    [NL_DEBUG] = {NAME("Debug"), NAME("Debug")},
};

enum { LEVEL_COUNT = sizeof names / sizeof names[0] };

const char *nl_level_name(nl_level level)
{
    return (unsigned)level < LEVEL_COUNT ? names[level].ulm.text : "";
}

const char *nl_level_bp_name(nl_level level)
{
    return (unsigned)level < LEVEL_COUNT ? names[level].bp.text : "";
}

/* Every record read asks this, hence the cheap refusals first. */
static bool is_name(const name *name, const char *text, size_t size)
{
    return name->size == size && ((name->text[0] ^ text[0]) & ~0x20) == 0 && strncasecmp(name->text, text, size) == 0;
}

nl_level nl_level_parse(const char *text, size_t size)
{
    if (size == 0)
        return NL_LEVEL_NONE;
    for (int level = NL_EMERGENCY; level < LEVEL_COUNT; level++)
        if (is_name(&names[level].ulm, text, size) || is_name(&names[level].bp, text, size))
            return (nl_level)level;
    return NL_LEVEL_NONE;
}
