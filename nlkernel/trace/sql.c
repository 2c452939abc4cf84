#include "config.h"

#include "trace/sql.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_SIZE = 64 };

typedef struct statement {
    const char *begin, *at, *end;
    sql_dialect dialect;
    size_t depth; /* number of open parentheses */
} statement;

typedef struct sql_word {
    char text[WORD_SIZE]; /* the ASCII characters */
    bool quoted;          /* a quoted name, which is not a keyword */
} sql_word;

static bool is_beyond_ascii(char c)
{
    return (unsigned char)c >= 0x80;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || is_beyond_ascii(c);
}

/* Skips to the end of the text `close`, or to the end of the statement if the text is missing. */
static void skip_past(statement *s, const char *close)
{
    const char *found = memmem(s->at, (size_t)(s->end - s->at), close, strlen(close));
    s->at = found != NULL ? found + strlen(close) : s->end;
}

/* Skips a comment between slashes. Comments of PostgreSQL may contain comments. */
static void skip_comment(statement *s)
{
    size_t depth = 0;
    do {
        size_t left = (size_t)(s->end - s->at);
        if (left >= 2 && memcmp(s->at, "/*", 2) == 0 && (depth == 0 || s->dialect != SQL_MYSQL)) {
            depth++;
            s->at += 2;
        } else if (left >= 2 && memcmp(s->at, "*/", 2) == 0) {
            depth--;
            s->at += 2;
        } else {
            s->at++;
        }
    } while (depth > 0 && s->at < s->end);
}

/* Skips a string that begins and ends with the character at the current position. */
static void skip_string(statement *s, bool escapes)
{
    char quote = *s->at;
    for (s->at++; s->at < s->end && *s->at != quote; s->at++)
        s->at += escapes && *s->at == '\\' && s->end - s->at > 1;
    s->at += s->at < s->end;
}

/*
 * Skips a string between two equal tags, such as $$text$$ and $tag$text$tag$. If there is no such string, skips the $
 * and the letters, digits and underscores that follow.
 */
static void skip_dollars(statement *s)
{
    const char *tag = s->at++;
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
        s->at++;
    size_t size = (size_t)(s->at - tag) + 1;
    if (s->at == s->end || *s->at != '$' || isdigit((unsigned char)tag[1]))
        return;
    const char *found = memmem(s->at + 1, (size_t)(s->end - s->at - 1), tag, size);
    s->at = found != NULL ? found + size : s->end;
}

/* Returns whether the string at the current position has the prefix E. The E of LIKE'x' is not a prefix. */
static bool has_escape_prefix(const statement *s)
{
    size_t before = (size_t)(s->at - s->begin);
    return before >= 1 && (s->at[-1] == 'E' || s->at[-1] == 'e') && (before == 1 || !is_word(s->at[-2]));
}

static char name_quote(const statement *s)
{
    return s->dialect == SQL_MYSQL ? '`' : '"';
}

/* Skips to the next word, over comments, strings and numbers. Counts the parentheses. */
static void skip_to_word(statement *s)
{
    bool mysql = s->dialect == SQL_MYSQL;
    while (s->at < s->end && !isalpha((unsigned char)*s->at) && *s->at != '_' && *s->at != name_quote(s) &&
           !is_beyond_ascii(*s->at)) {
        size_t left = (size_t)(s->end - s->at);
        if (*s->at == '\'' || *s->at == '"') {
            skip_string(s, mysql || has_escape_prefix(s));
        } else if (mysql && *s->at == '#') {
            skip_past(s, "\n");
        } else if (left >= 2 && memcmp(s->at, "/*", 2) == 0) {
            skip_comment(s);
        } else if (left >= 2 && memcmp(s->at, "--", 2) == 0 &&
                   (!mysql || left == 2 || (unsigned char)s->at[2] <= ' ')) {
            skip_past(s, "\n");
        } else if (!mysql && *s->at == '$') {
            skip_dollars(s);
        } else if (isdigit((unsigned char)*s->at)) {
            while (s->at < s->end && is_word(*s->at))
                s->at++;
        } else {
            s->depth += *s->at == '(';
            s->depth -= *s->at == ')' && s->depth > 0;
            s->at++;
        }
    }
}

/* Returns whether the word continues at the current position, as in "a"."b", a."b" and "a".b. In a quoted name, two
 * quotes stand for a quote. */
static bool word_continues(const statement *s, bool quoted)
{
    return s->at < s->end && ((quoted && *s->at == '.') || (*s->at == name_quote(s) && (quoted || s->at[-1] == '.')));
}

/* Reads the next word. A quoted name is a word without its quotes. Returns false at the end. */
static bool next_word(statement *s, sql_word *word)
{
    size_t length = 0;
    bool quoted;
    skip_to_word(s);
    if (s->at == s->end)
        return false;
    word->quoted = false;
    do {
        quoted = *s->at == name_quote(s);
        word->quoted = word->quoted || quoted;
        s->at += quoted;
        for (; s->at < s->end && (quoted ? *s->at != name_quote(s) : is_word(*s->at)); s->at++)
            if (length + 1 < WORD_SIZE && is_word(*s->at) && !is_beyond_ascii(*s->at))
                word->text[length++] = *s->at;
        s->at += quoted && s->at < s->end;
    } while (word_continues(s, quoted));
    word->text[length] = '\0';
    return true;
}

static bool is_keyword(const sql_word *word, const char *const *list)
{
    for (; !word->quoted && *list != NULL; list++)
        if (strcasecmp(word->text, *list) == 0)
            return true;
    return false;
}

/* Sets request->verb to the word in capitals. Returns false if the word is not a verb: it is quoted, or is not all
 * letters. */
static bool set_verb(protocol_request *request, const sql_word *word)
{
    enum { VERB_MAX = 16 };
    for (const char *at = word->text; *at != '\0' && at - word->text < VERB_MAX; at++)
        if (!isalpha((unsigned char)*at))
            return false;
    for (size_t i = 0; i < VERB_MAX && word->text[i] != '\0' && !word->quoted; i++)
        request->verb[i] = (char)toupper((unsigned char)word->text[i]);
    return *request->verb != '\0';
}

void sql_read_statement(protocol_request *request, const char *text, size_t size, sql_dialect dialect)
{
    static const char *const table_next[] = {"UPDATE", "COPY", "TRUNCATE", "INSERT", "REPLACE", NULL},
                             *const table_later[] = {"SELECT", "DELETE", "WITH",    "CREATE",
                                                     "DROP",   "ALTER",  "EXPLAIN", NULL},
                             *const before_table[] = {"FROM", "INTO", "TABLE", "JOIN", NULL},
                             *const not_table[] = {"ONLY",          "TABLE",   "IGNORE",  "LOW_PRIORITY",
                                                   "HIGH_PRIORITY", "DELAYED", "INTO",    "IF",
                                                   "EXISTS",        "NOT",     "LATERAL", NULL},
                             *const no_table[] = {"SELECT", "WITH", "VALUES", "OUTFILE", "DUMPFILE", NULL},
                             *const from_argument[] = {"EXTRACT", "TRIM", "SUBSTRING", "OVERLAY", NULL},
                             *const distinct[] = {"DISTINCT", NULL}, *const before_distinct[] = {"IS", "NOT", NULL};
    statement s = {.begin = text, .at = text, .end = text + size, .dialect = dialect};
    size_t argument_depth = SIZE_MAX; /* depth of arguments in which FROM precedes no table: extract(year from x) */
    sql_word word;
    char function[WORD_SIZE] = "";
    if (!next_word(&s, &word) || !set_verb(request, &word))
        return;
    bool table = is_keyword(&word, table_next), compares = false, was_distinct = false;
    if (!table && !is_keyword(&word, table_later))
        return; /* BEGIN, COMMIT, SET and others have no object, or their object is a value */
    while (next_word(&s, &word)) {
        bool is_function = s.at < s.end && *s.at == '(';
        if (s.depth < argument_depth)
            argument_depth = is_function && is_keyword(&word, from_argument) ? s.depth + 1 : SIZE_MAX;
        if (table && is_keyword(&word, no_table)) {
            table = false; /* a subquery, or a file */
            continue;
        }
        if (table && !is_keyword(&word, not_table)) {
            protocol_copy_name(request->object, sizeof request->object, word.text, strlen(word.text));
            return;
        }
        if (!table && *function == '\0' && is_function)
            memcpy(function, word.text, sizeof function);
        /* the FROM of IS DISTINCT FROM precedes a value */
        table = table || (argument_depth == SIZE_MAX && !was_distinct && is_keyword(&word, before_table));
        was_distinct = compares && is_keyword(&word, distinct);
        compares = is_keyword(&word, before_distinct);
    }
    protocol_copy_name(request->object, sizeof request->object, function, strlen(function));
}
