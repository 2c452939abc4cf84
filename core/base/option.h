/*
 * Options: one table row per option, whatever it is an option of.
 *
 * A row says what an option is called, what values it takes and where the value goes. Command lines, options of URLs,
 * configuration files and environment variables are all read by such rows; --help, --help=json, the option lists of the
 * manual pages and shell completion are written from them. Rows are constant and end with one that has no name.
 *
 * Values are written alike everywhere: a duration is 10s, 500ms, 5m, 2h or 1d, and a bare number is in seconds; a size
 * is 64k, 256m or 1g; a flag is yes or no; a time is absolute (time.h), or relative to now as in -10m.
 *
 * The module has no state. Any thread may call it for settings that no other thread uses meanwhile.
 */
#ifndef NETLOGGER_BASE_OPTION_H
#define NETLOGGER_BASE_OPTION_H

#include <netlogger.h>

#include <stddef.h>

enum {
    NL_OPTION_TEXT_SIZE = 512, /* of any value as text */
    NL_OPTION_VALUE_SIZE = 64, /* of a number, duration, size, time or choice as text */
};

typedef enum nl_option_type {
    NL_OPTION_TEXT,     /* const char *: the value itself, which must outlive the settings */
    NL_OPTION_COPY,     /* char *: a copy, owned by the settings; nl_options_free frees it */
    NL_OPTION_FLAG,     /* bool */
    NL_OPTION_COUNT,    /* an integer */
    NL_OPTION_SIZE,     /* an integer: bytes */
    NL_OPTION_DURATION, /* an integer: nanoseconds, or multiples of the row's unit; -1 - INDEX for one of the choices */
    NL_OPTION_TIME,     /* int64_t: nanoseconds since 1970 */
    NL_OPTION_CHOICE,   /* an integer: the index in the row's choices */
    NL_OPTION_LEVEL,    /* nl_level */
} nl_option_type;

/* Where an option is valid. A row that names no place is valid on the command line. */
enum {
    NL_OPTION_ON_COMMAND_LINE = 1,
    NL_OPTION_IN_FILE = 2,
    NL_OPTION_IN_URL = 4,
    NL_OPTION_ON_RELOAD = 8, /* a change of it in the file holds after a reload */
    NL_OPTION_IN_DAEMON = NL_OPTION_ON_COMMAND_LINE | NL_OPTION_IN_FILE,
};

typedef struct nl_option nl_option;

/* Sets an option whose value needs more than its type says. Returns false and sets the error when it is invalid. */
typedef bool nl_option_setter(void *settings, const nl_option *row, const char *value);

/* The value at an index, from 0, of what an option holds; NULL behind the last. scratch may hold the text. */
typedef const char *nl_option_getter(const void *settings, size_t index, char scratch[NL_OPTION_TEXT_SIZE]);

struct nl_option {
    const char *name;
    char letter; /* 0: none */
    bool repeatable;
    bool optional_value; /* --name alone is allowed: the setter gets "" */
    bool empty_value;    /* "" is a value */
    bool is_path;        /* of a file or directory, relative to the working directory */
    nl_option_type type; /* with a setter: only describes the value in help */
    unsigned places;     /* 0: NL_OPTION_ON_COMMAND_LINE */
    const char *value;   /* what help calls the value: FILE; NULL: by its type */
    const char *initial; /* the default, in the option's own notation; in parentheses: a description of it */
    int64_t minimum;     /* of counts, bytes, nanoseconds */
    int64_t maximum;     /* 0: as much as the member holds */
    int64_t unit;        /* of durations: nanoseconds in what is stored; 0: 1 */
    const char *choices; /* separated by '|'; of a duration: words that are valid instead of a number */
    const char *(*list_choices)(void); /* the choices, when code makes them; the one at index 0 may be empty: not set */
    const char *environment;           /* the variable that sets it too; NULL: none */
    const char *commands;  /* the subcommands, or schemes of URLs, that have it, with blanks between; NULL: all */
    size_t offset, size;   /* of the member that holds the value; size 0: none */
    nl_option_setter *set; /* NULL: by type */
    nl_option_getter *get; /* of a repeatable option, or one whose member is not its value; NULL: by type */
    const char *help;      /* one sentence without a full stop */
};

/* The member of a row: .offset and .size. */
#define NL_OPTION_MEMBER(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* ---- values ---- */

/* Reads a duration. Returns false when text is not a duration or does not fit. */
bool nl_duration_parse(const char *text, int64_t *duration_ns);

/* Reads an absolute time, or one relative to now: -10m. False when text is neither, or eight digits. */
bool nl_time_parse_relative(const char *text, int64_t *time_ns);

/* Writes a value in the shortest form that reads back alike: 90s, 1500ms, 64k. Returns out. */
const char *nl_duration_format(int64_t duration_ns, char out[NL_OPTION_VALUE_SIZE]);
const char *nl_size_format(uint64_t size, char out[NL_OPTION_VALUE_SIZE]);

/* Writes a row's bound (minimum or maximum) in the option's own notation. Returns out. */
const char *nl_option_format_bound(const nl_option *row, int64_t bound, char out[NL_OPTION_VALUE_SIZE]);

/* ---- rows ---- */

/* The type as help and JSON name it: "duration". */
const char *nl_option_type_name(const nl_option *row);

/* What may be chosen: "a|b|c", or NULL. */
const char *nl_option_choices(const nl_option *row);

/* Returns the row with that name that is valid in one of the places, or NULL. */
const nl_option *nl_option_find(const nl_option *rows, const char *name, unsigned places);

/* The name most like one that is unknown; name is NULL when none is like it. Begins as zeros. */
typedef struct nl_option_nearest {
    const char *name;
    unsigned distance;
} nl_option_nearest;

/* Compares the names of rows that are valid in one of the places with the unknown name. */
void nl_option_find_nearest(nl_option_nearest *nearest, const nl_option *rows, const char *unknown, unsigned places);

/* Whether a list with separators, such as choices or commands, holds the word. */
bool nl_option_list_has(const char *list, char separator, const char *word, size_t size);

/*
 * Sets an option of settings from text. False with the problem in message, which begins neither with the program's nor
 * the option's name: "\"x\" is not a duration; write for example 10s, 5m or 2h".
 */
bool nl_option_set(const nl_option *row, void *settings, const char *value);

/* The option's present value as text, or that at an index of a repeatable option (0 for others); scratch may hold it.
 * NULL when it is not set, or not kept by the row. */
const char *nl_option_get(const nl_option *row, const void *settings, char scratch[NL_OPTION_TEXT_SIZE]);
const char *nl_option_get_at(const nl_option *row, const void *settings, size_t index,
                             char scratch[NL_OPTION_TEXT_SIZE]);

/* Sets all defaults. Returns NULL, or the row that rejects its own default after setting the error. */
const nl_option *nl_options_init(const nl_option *rows, void *settings);

/* Frees all copies, and sets them NULL. */
void nl_options_free(const nl_option *rows, void *settings);

/* The first row of a file's options that differs between two settings and is not valid on reload; NULL: none. */
const nl_option *nl_options_fixed_difference(const nl_option *rows, const void *a, const void *b);

/* Sets the options that have an environment variable. Returns NULL, or the first row that rejects its variable's value
 * after setting the error, which names the variable; the others are set nevertheless. */
const nl_option *nl_options_read_environment(const nl_option *rows, void *settings);

#endif
