/*
 * Levels.
 *
 * The level of a record (LVL) is the record's urgency. The order of the levels is that of the ULM draft
 * (draft-abela-ulm-05, section 5.2), from most to least urgent. A log has a threshold: it drops events whose level
 * comes after the threshold. BP has other names for three levels: Fatal is Emergency, Warn is Warning, Info is Usage.
 */
#ifndef NETLOGGER_LEVEL_H
#define NETLOGGER_LEVEL_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef enum nl_level {
    NL_LEVEL_NONE = 0, /* no level, or a level not in this list, whose text is in level_text of the record */
    NL_EMERGENCY,
    NL_ALERT,
    NL_ERROR,
    NL_WARNING,
    NL_AUTH,
    NL_SECURITY,
    NL_USAGE,
    NL_SYSTEM,
    NL_IMPORTANT,
    NL_DEBUG,
} nl_level;

/* The names of all levels, for help and messages. */
#define NL_LEVEL_NAMES "Emergency, Alert, Error, Warning, Auth, Security, Usage, System, Important, Debug"

/* The functions below are safe in any thread and in signal handlers. */

/* Returns the ULM name of a level, or "" for NL_LEVEL_NONE, in static storage. */
NL_API const char *nl_level_name(nl_level level);

/* Returns the level whose ULM or BP name is text[0..size), in upper or lower case, or NL_LEVEL_NONE. */
NL_API nl_level nl_level_parse(const char *text, size_t size);

NL_END_DECLS
#endif
