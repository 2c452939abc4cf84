#include "config.h"

#include "trace/sql.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_SIZE = 64 };

typedef struct statement {
    const char *begin, *at, *end;
    sql_dialect dialect;
} statement;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

/* Skips up to and including the text `close`, or to the end. */
static void skip_past(statement *s, const char *close)
{
    const char *found = memmem(s->at, (size_t)(s->end - s->at), close, strlen(close));
    s->at = found != NULL ? found + strlen(close) : s->end;
}

/* Skips a string between two characters that are the one at the present position. */
static void skip_string(statement *s, bool escapes)
{
    char quote = *s->at;
    for (s->at++; s->at < s->end && *s->at != quote; s->at++)
        s->at += escapes && *s->at == '\\' && s->end - s->at > 1;
    s->at += s->at < s->end;
}

/* Skips a string between two equal tags, such as $$text$$ and $tag$text$tag$, or one character. */
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

static char name_quote(const statement *s)
{
    return s->dialect == SQL_MYSQL ? '`' : '"';
}

/* Skips what is no word: blanks, comments, and strings, which contain values. */
static void skip_to_word(statement *s)
{
    bool mysql = s->dialect == SQL_MYSQL;
    while (s->at < s->end && !isalpha((unsigned char)*s->at) && *s->at != '_' && *s->at != name_quote(s)) {
        size_t left = (size_t)(s->end - s->at);
        if (*s->at == '\'' || *s->at == '"') {
            skip_string(s, mysql || (s->at > s->begin && (s->at[-1] == 'E' || s->at[-1] == 'e')));
        } else if (mysql && *s->at == '#') {
            skip_past(s, "\n");
        } else if (left >= 2 && memcmp(s->at, "/*", 2) == 0) {
            s->at += 2;
            skip_past(s, "*/");
        } else if (left >= 2 && memcmp(s->at, "--", 2) == 0) {
            skip_past(s, "\n");
        } else if (!mysql && *s->at == '$') {
            skip_dollars(s);
        } else if (isdigit((unsigned char)*s->at)) {
            while (s->at < s->end && is_word(*s->at))
                s->at++;
        } else {
            s->at++;
        }
    }
}

/* Reads the next word. A quoted name is a word without its quotes. Returns false at the end. */
static bool next_word(statement *s, char word[WORD_SIZE])
{
    size_t length = 0;
    skip_to_word(s);
    bool quoted = s->at < s->end && *s->at == name_quote(s);
    s->at += quoted;
    for (; s->at < s->end && (is_word(*s->at) || (quoted && *s->at != name_quote(s))); s->at++)
        if (length + 1 < WORD_SIZE && is_word(*s->at))
            word[length++] = *s->at;
    s->at += quoted && s->at < s->end;
    word[length] = '\0';
    return length > 0;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcasecmp(word, *list) == 0)
            return true;
    return false;
}

void sql_read_statement(protocol_request *request, const char *text, size_t size, sql_dialect dialect)
{
    static const char *const table_next[] = {"UPDATE", "COPY", "TRUNCATE", NULL},
                             *const table_later[] = {"SELECT",  "INSERT", "DELETE", "WITH",    "CREATE",
                                                     "REPLACE", "DROP",   "ALTER",  "EXPLAIN", NULL},
                             *const before_table[] = {"FROM", "INTO", "TABLE", "JOIN", NULL},
                             *const not_table[] = {"ONLY", "TABLE", "IGNORE", "IF", "EXISTS", "NOT", "LATERAL", NULL};
    statement s = {text, text, text + size, dialect};
    char word[WORD_SIZE], function[WORD_SIZE] = "";
    if (!next_word(&s, word))
        return;
    for (size_t i = 0; word[i] != '\0' && i + 1 < 17; i++)
        request->verb[i] = (char)toupper((unsigned char)word[i]);
    for (size_t i = 0; request->verb[i] != '\0'; i++)
        if (!isalpha((unsigned char)request->verb[i])) {
            memset(request->verb, 0, sizeof request->verb);
            return;
        }
    bool table = is_one_of(request->verb, table_next);
    if (!table && !is_one_of(request->verb, table_later))
        return; /* BEGIN, COMMIT, SET and others have no object, or a value */
    while (next_word(&s, word)) {
        if (table && !is_one_of(word, not_table)) {
            protocol_copy_name(request->object, sizeof request->object, word, strlen(word));
            return;
        }
        if (!table && *function == '\0' && s.at < s.end && *s.at == '(')
            memcpy(function, word, sizeof function);
        table = table || is_one_of(word, before_table);
    }
    protocol_copy_name(request->object, sizeof request->object, function, strlen(function));
}
