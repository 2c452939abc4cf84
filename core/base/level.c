#include "config.h"

#include "base/level.h"

#include <netlogger.h>

#include <string.h>

typedef struct name {
    const char *text;
    size_t size;
} name;

#define NAME(literal)                                                                                                  \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

/* The names of each level, indexed by nl_level. For a level that has no BP name, BP uses the ULM name. */
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

static bool is_exactly(const name *name, nl_string text)
{
    return name->size == text.size && memcmp(name->text, text.data, text.size) == 0;
}

bool nl_level_has_name(nl_level level, nl_string text)
{
    return text.data == NULL || ((unsigned)level < LEVEL_COUNT &&
                                 (is_exactly(&names[level].ulm, text) || is_exactly(&names[level].bp, text)));
}

/*
 * Indexed by a letter: the set of levels whose names begin with the letter, one bit per level. For most letters, the
 * set has at most one level.
 */
static const unsigned short by_letter[32] = {
    ['e' & 31] = 1 << NL_EMERGENCY | 1 << NL_ERROR, ['f' & 31] = 1 << NL_EMERGENCY,
    ['a' & 31] = 1 << NL_ALERT | 1 << NL_AUTH,      ['w' & 31] = 1 << NL_WARNING,
    ['s' & 31] = 1 << NL_SECURITY | 1 << NL_SYSTEM, ['u' & 31] = 1 << NL_USAGE,
    ['i' & 31] = 1 << NL_USAGE | 1 << NL_IMPORTANT, ['d' & 31] = 1 << NL_DEBUG,
};

/* Returns whether a text is the name, without regard to case. Upper and lower case differ in one bit. */
static bool is_name(const name *name, const char *text, size_t size)
{
    if (name->size != size)
        return false;
    unsigned differ = 0;
    for (size_t i = 0; i < size; i++)
        differ |= (unsigned char)(name->text[i] ^ text[i]);
    return (differ & ~0x20u) == 0;
}

nl_level nl_level_parse(const char *text, size_t size)
{
    if (size == 0)
        return NL_LEVEL_NONE;
    unsigned left = by_letter[text[0] & 31];
    for (; left != 0; left &= left - 1) {
        int level = __builtin_ctz(left);
        if (is_name(&names[level].ulm, text, size) || is_name(&names[level].bp, text, size))
            return (nl_level)level;
    }
    return NL_LEVEL_NONE;
}
