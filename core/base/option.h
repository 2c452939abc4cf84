/*
 * Options: one table row per option.
 *
 * A row contains an option's name, its valid values and the member that stores the value. Rows control the parsing of
 * command lines, URLs, configuration files and environment variables. They are also the source of --help, --help=json,
 * the option lists in the manual pages, and shell completion. An array of rows is constant, and ends with a row that
 * has no name.
 *
 * The notation of values is as follows. A duration is 10s, 500ms, 5m, 2h or 1d; a bare number is in seconds. A size is
 * 64k, 256m or 1g. A flag is yes or no. A time is absolute (time.h), or relative to now, as in -10m.
 *
 * The module has no state. Any thread may call it for settings that no other thread uses at the same time.
 */
#ifndef NETLOGGER_BASE_OPTION_H
#define NETLOGGER_BASE_OPTION_H

#include <netlogger.h>

#include <stddef.h>

enum {
    NL_OPTION_TEXT_SIZE = 512, /* size of a buffer for any value as text */
    NL_OPTION_VALUE_SIZE = 64, /* size of a buffer for a number, duration, size, time or choice as text */
};

typedef enum nl_option_type {
    NL_OPTION_TEXT,     /* const char *: points to the value, which must outlive the settings */
    NL_OPTION_COPY,     /* char *: a copy, owned by the settings; nl_options_free frees it */
    NL_OPTION_FLAG,     /* bool */
    NL_OPTION_COUNT,    /* an integer */
    NL_OPTION_SIZE,     /* an integer: bytes */
    NL_OPTION_DURATION, /* an integer in nanoseconds or in the row's unit, or -1 - INDEX if the value is a choice */
    NL_OPTION_TIME,     /* int64_t: nanoseconds since 1970 */
    NL_OPTION_CHOICE,   /* an integer: the index in the row's choices */
    NL_OPTION_LEVEL,    /* nl_level */
} nl_option_type;

typedef struct nl_option nl_option;

/*
 * Sets an option whose type alone does not determine how to parse it. Returns false and sets the error if the value is
 * invalid.
 */
typedef bool nl_option_setter(void *settings, const nl_option *row, const char *value);

/*
 * Returns the value at an index, or NULL after the last value. The first index is 0. The returned text may be stored in
 * `scratch`.
 */
typedef const char *nl_option_getter(const void *settings, size_t index, char scratch[NL_OPTION_TEXT_SIZE]);

struct nl_option {
    const char *name;
    char letter; /* 0: no one-letter form */
    bool repeatable;
    bool optional_value; /* --name without a value is allowed; the setter then gets "" */
    bool empty_value;    /* "" is valid */
    bool takes_operands; /* on the command line, later operands are further values of this option */
    bool on_reload;      /* a reload of the configuration file can change the option */
    bool is_path;        /* the value is the path of a file or directory, relative to the working
                          * directory */
    nl_option_type type; /* if set is not NULL, the type is used only for help */
    const char *value;   /* placeholder in help, such as FILE; NULL selects a placeholder by type */
    const char *initial; /* the default in the option's notation, or a description in parentheses */
    int64_t minimum;     /* minimum value, in counts, bytes or nanoseconds */
    int64_t maximum;     /* maximum value; 0 means the maximum that the member can store */
    int64_t unit;        /* for durations: nanoseconds per unit of the member; 0 means 1 */
    const char *choices; /* valid values, separated by '|'; for durations: texts that are valid instead of a number */
    const char *(*list_choices)(void); /* returns choices; if the choice at index 0 is empty, it means "not set" */
    const char *environment;           /* environment variable, or NULL */
    const char *commands;              /* valid subcommands or URL schemes, separated by blanks; NULL means all */
    size_t offset,
        size; /* offset and size in bytes of the member that stores the value; size 0 means that no member stores it */
    nl_option_setter *set; /* NULL selects the function for the type */
    nl_option_getter *get; /* NULL selects the function for the type */
    const char *help;      /* one sentence without a full stop */
};

/* Initializes .offset and .size of a row. */
#define NL_OPTION_MEMBER(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* ---- values ---- */

/* Parses a duration. Returns false, without setting the error, if text is not a duration or is out of range. */
bool nl_duration_parse(const char *text, int64_t *duration_ns);

/*
 * Parses an absolute time, or a time relative to now (-10m). Returns false if text is neither a number nor a time, or
 * if text consists of eight digits.
 */
bool nl_time_parse_relative(const char *text, int64_t *time_ns);

/* Formats a value with the largest unit that represents it exactly, such as 90s, 1500ms or 64k. Returns `out`. */
const char *nl_duration_format(int64_t duration_ns, char out[NL_OPTION_VALUE_SIZE]);
const char *nl_size_format(uint64_t size, char out[NL_OPTION_VALUE_SIZE]);

/* Formats a row's minimum or maximum in the option's notation. Returns `out`. */
const char *nl_option_format_bound(const nl_option *row, int64_t bound, char out[NL_OPTION_VALUE_SIZE]);

/* ---- rows ---- */

/* Returns the name of the type in help and JSON, such as "duration". */
const char *nl_option_type_name(const nl_option *row);

/* Returns the choices, such as "a|b|c", or NULL if the row has no choices. */
const char *nl_option_choices(const nl_option *row);

/* Returns the row with this name, or NULL. */
const nl_option *nl_option_find(const nl_option *rows, const char *name);

/* The option name most similar to an unknown name; NULL if none is similar. Initialize the structure with zeros. */
typedef struct nl_option_nearest {
    const char *name;
    unsigned distance;
} nl_option_nearest;

/*
 * Compares the names of the rows with an unknown name. Sets *nearest to a name that is similar to the unknown name, and
 * more similar than nearest->name.
 */
void nl_option_find_nearest(nl_option_nearest *nearest, const nl_option *rows, const char *unknown);

/* Returns whether item, which has `size` bytes, is in a list such as choices or commands. */
bool nl_option_list_has(const char *list, char separator, const char *item, size_t size);

/*
 * Sets an option of settings from text. Returns false and sets the error if the value is invalid. The message does not
 * contain the option's name.
 */
bool nl_option_set(const nl_option *row, void *settings, const char *value);

/* Like nl_option_set, but ignores the row's setter and parses the value by type. Setters can call this function. */
bool nl_option_set_by_type(const nl_option *row, void *settings, const char *value);

/*
 * Return the option's value as text, or the value at an index of a repeatable option. The returned text may be stored
 * in `scratch`. Both functions return NULL if the value is not set or the row has no member.
 */
const char *nl_option_get(const nl_option *row, const void *settings, char scratch[NL_OPTION_TEXT_SIZE]);
const char *nl_option_get_at(const nl_option *row, const void *settings, size_t index,
                             char scratch[NL_OPTION_TEXT_SIZE]);

/* Sets all defaults. Returns NULL, or sets the error and returns the row whose default is invalid. */
const nl_option *nl_options_init(const nl_option *rows, void *settings);

/* Frees all copies (NL_OPTION_COPY) and sets them to NULL. */
void nl_options_free(const nl_option *rows, void *settings);

/* Returns the first option that differs between a and b and that a reload cannot change, or NULL. */
const nl_option *nl_options_fixed_difference(const nl_option *rows, const void *a, const void *b);

/*
 * Sets options from their environment variables, and ignores invalid values. Returns NULL if all values are valid.
 * Otherwise sets an error that names the first invalid variable, and returns the row of that variable.
 */
const nl_option *nl_options_read_environment(const nl_option *rows, void *settings);

#endif
