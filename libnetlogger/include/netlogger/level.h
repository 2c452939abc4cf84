/*
 * Levels.
 *
 * A record's LVL says what kind of event it is, from the most to the least urgent, in the order that the ULM draft
 * (draft-abela-ulm-05, section 5.2) lists them. A log's threshold is a level too: events after it in the list are off.
 * BP names some of them otherwise: Fatal is Emergency, Warn is Warning, Info is Usage; Error and Debug are the same in
 * both.
 */
#ifndef NETLOGGER_LEVEL_H
#define NETLOGGER_LEVEL_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef enum nl_level {
    NL_LEVEL_NONE = 0, /* the record has no level, or one that is not in this list (its text is kept) */
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

/* All their names, for help and messages. */
#define NL_LEVEL_NAMES "Emergency, Alert, Error, Warning, Auth, Security, Usage, System, Important, Debug"

/* All calls below are safe in any thread and in signal handlers. */

/* The name that ULM gives a level, "" for NL_LEVEL_NONE; static storage. */
NL_API const char *nl_level_name(nl_level level);

/* The level that text[0..size) names in ULM or BP, in any case; NL_LEVEL_NONE when it names none. */
NL_API nl_level nl_level_parse(const char *text, size_t size);

NL_END_DECLS
#endif
