#include "config.h"

#include <math.h>

#include "diag/columns.h"

#include "stat/text_key.h"

#include <ctype.h>
#include <string.h>

/* A float represents every integer up to this number exactly. */
#define EXACT_MAX 16777216.0f

enum { NO_COLUMN = COLUMNS_MAX + 1, NAMES_MAX = 4096, LETTERS_MAX = 40, PATH_SIZE = 128, HEX_MIN = 8 };

columns *columns_new(void)
{
    columns *c = g_new0(columns, 1);
    c->by_name = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    return c;
}

void columns_free(columns *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        column *of = &c->all[i];
        g_free(of->name);
        g_hash_table_destroy(of->numbers);
        g_ptr_array_free(of->texts, TRUE);
        g_array_free(of->large, TRUE);
        g_array_free(of->of_requests, TRUE);
        g_array_free(of->of_visits, TRUE);
        g_array_free(of->since, TRUE);
    }
    g_hash_table_destroy(c->by_name);
    g_free(c);
}

void columns_exclude(columns *c, const char *const *names)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        g_hash_table_insert(c->by_name, text_key_new((nl_string){names[i], strlen(names[i])}),
                            GUINT_TO_POINTER(NO_COLUMN));
}

/* Stores the start of a name in lower case, without '.', '_' and '-', in `letters`. */
static void simplify_name(nl_string name, char letters[LETTERS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < name.size && count < LETTERS_MAX - 1; i++)
        if (strchr("._-", name.data[i]) == NULL)
            letters[count++] = (char)tolower((unsigned char)name.data[i]);
    letters[count] = '\0';
}

/* Returns whether a field is an ID or a result of the request, according to its name. */
static bool explains_nothing(nl_string name)
{
    static const char *const whole[] = {"ts",  "ph",     "pid", "tid",    "thread",           "start",
                                        "end", "status", "seq", "nlevnt", "downstreamstatus", "originstatus"};
    static const char *const parts[] = {"traceid", "spanid", "parentid", "threadid", "duration", "elapsed", "latency",
                                        "statusc", "error",  "timeout",  "original", "took",     "overhead"};
    char letters[LETTERS_MAX];
    simplify_name(name, letters);
    for (size_t i = 0; i < G_N_ELEMENTS(whole); i++)
        if (strcmp(letters, whole[i]) == 0)
            return true;
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (strstr(letters, parts[i]) != NULL)
            return true;
    return strncmp(letters, "dur", 3) == 0;
}

/* Returns whether a field contains URLs, according to its name. */
static bool contains_urls(nl_string name)
{
    static const char *const names[] = {"uri",         "url",     "path",       "request",  "requesturi", "requesturl",
                                        "requestpath", "httpurl", "httptarget", "httppath", "urlpath",    "target"};
    char letters[LETTERS_MAX];
    simplify_name(name, letters);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(letters, names[i]) == 0)
            return true;
    return false;
}

/* Returns whether a part of a path is a number or an identifier: it has only digits, or many hexadecimal digits. */
static bool is_identifier(const char *part, size_t size)
{
    size_t digits = 0, hex = 0;
    for (size_t i = 0; i < size; i++) {
        digits += isdigit((unsigned char)part[i]) != 0;
        hex += isxdigit((unsigned char)part[i]) != 0 || part[i] == '-';
    }
    return digits > 0 && (digits == size || (hex == size && size >= HEX_MIN));
}

/* Returns whether a text is a path, or a method and a path, as in "GET /index.html". */
static bool is_path(nl_string text)
{
    size_t at = 0;
    while (at < text.size && isalpha((unsigned char)text.data[at]))
        at++;
    at += at > 0 && at < text.size && text.data[at] == ' ';
    return at < text.size && text.data[at] == '/' && (at == 0 || text.data[at - 1] == ' ');
}

/* Returns the size of "scheme://authority" at the start of a text, or 0 if the text has no scheme. */
static size_t authority_size(nl_string text)
{
    const char *scheme = memmem(text.data, text.size, "://", 3);
    if (scheme == NULL)
        return 0;
    size_t at = (size_t)(scheme + 3 - text.data);
    while (at < text.size && text.data[at] != '/')
        at++;
    return at;
}

/*
 * Shortens a URL or a path to the name of the operation: an optional method or server, and the path without the query.
 * Replaces identifiers and numbers of several digits in the path with N. Other texts, such as addresses of servers,
 * remain unchanged. Returns the text, which is in `buffer` or in `url`.
 */
static nl_string path_of_url(nl_string url, char buffer[PATH_SIZE])
{
    size_t at = authority_size(url), count = at;
    if (at >= PATH_SIZE / 2 || !is_path((nl_string){url.data + at, url.size - at}))
        return url;
    memcpy(buffer, url.data, at);
    while (at < url.size && count < PATH_SIZE - 2) {
        size_t end = at;
        while (end < url.size && strchr("/ ?#;", url.data[end]) == NULL)
            end++;
        if (is_identifier(url.data + at, end - at)) {
            buffer[count++] = 'N';
            at = end;
        }
        while (at < end && count < PATH_SIZE - 2) {
            size_t digits = at;
            while (digits < end && isdigit((unsigned char)url.data[digits]))
                digits++;
            buffer[count++] = digits - at > 1 ? 'N' : url.data[at];
            at = MAX(digits, at + 1);
        }
        bool is_method = at < url.size && url.data[at] == ' ' && memchr(buffer, '/', count) == NULL;
        if (at == url.size || (url.data[at] != '/' && !is_method))
            break;
        buffer[count++] = url.data[at++];
    }
    return (nl_string){buffer, count};
}

static column *add_column(columns *c, nl_string name)
{
    column *of = &c->all[c->count++];
    of->name = g_strndup(name.data, name.size);
    of->is_path = contains_urls(name);
    of->numbers = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    of->texts = g_ptr_array_new_with_free_func(g_free);
    of->large = g_array_new(FALSE, FALSE, sizeof(float));
    of->of_requests = g_array_new(FALSE, FALSE, sizeof(float));
    of->of_visits = g_array_new(FALSE, FALSE, sizeof(float));
    of->since = g_array_new(FALSE, FALSE, sizeof(float));
    return of;
}

column *columns_add(columns *c, const char *name)
{
    return c->count < COLUMNS_MAX ? add_column(c, (nl_string){name, strlen(name)}) : NULL;
}

float column_number(column *c, nl_string text)
{
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(c->numbers, &text));
    if (number == 0 && c->texts->len == COLUMN_TEXTS_MAX) {
        c->closed = true;
        return 0;
    }
    if (number == 0) {
        g_ptr_array_add(c->texts, g_strndup(text.data, text.size));
        number = c->texts->len;
        g_hash_table_insert(c->numbers, text_key_new(text), GUINT_TO_POINTER(number));
    }
    return (float)(number - 1);
}

/* Returns the index in `large` of the number that a value represents, or -1. */
static int find_large(const column *c, float value)
{
    for (guint i = 0; i < c->large->len; i++)
        if (g_array_index(c->large, float, i) == value)
            return (int)i;
    return -1;
}

/* Returns the value that represents a number. A number below EXACT_MAX represents itself. */
static float value_of_number(column *c, double number, nl_string text)
{
    float value = (float)number;
    if (fabs(number) < EXACT_MAX || !isfinite(value))
        return value;
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(c->numbers, &text));
    if (known != 0)
        return g_array_index(c->large, float, known - 1);
    if (c->large->len == COLUMN_TEXTS_MAX)
        return value;
    while (find_large(c, value) >= 0)
        value = nextafterf(value, INFINITY);
    g_ptr_array_add(c->texts, g_strndup(text.data, text.size));
    g_array_append_val(c->large, value);
    g_hash_table_insert(c->numbers, text_key_new(text), GUINT_TO_POINTER(c->texts->len));
    return value;
}

bool columns_read(columns *c, const nl_field *field, column_value *value)
{
    guint found = GPOINTER_TO_UINT(g_hash_table_lookup(c->by_name, &field->name));
    if (found == 0) {
        if (g_hash_table_size(c->by_name) >= NAMES_MAX)
            return false;
        found = c->count == COLUMNS_MAX || explains_nothing(field->name) ? NO_COLUMN : c->count + 1;
        if (found != NO_COLUMN)
            add_column(c, field->name);
        g_hash_table_insert(c->by_name, text_key_new(field->name), GUINT_TO_POINTER(found));
    }
    if (found == NO_COLUMN || c->all[found - 1].closed)
        return false;
    column *of = &c->all[found - 1];
    char scratch[NL_FIELD_TEXT_SIZE];
    double number;
    value->column = found - 1;
    if (!of->has_text && nl_field_double(field, &number)) {
        of->has_number = true;
        value->value = value_of_number(of, number, nl_field_text(field, scratch));
        return true;
    }
    if (of->has_number) {
        of->closed = true;
        return false;
    }
    of->has_text = true;
    nl_string text = nl_field_text(field, scratch);
    char path[PATH_SIZE];
    value->value = column_number(of, of->is_path ? path_of_url(text, path) : text);
    return !of->closed;
}

void column_set(GArray *values, size_t index, float value)
{
    while (values->len <= index) {
        float none = NAN;
        g_array_append_val(values, none);
    }
    if (isnan(g_array_index(values, float, index)))
        g_array_index(values, float, index) = value;
}

char *column_text(const column *c, float value)
{
    if (c->has_text && value >= 0 && value < (float)c->texts->len)
        return g_strdup(g_ptr_array_index(c->texts, (guint)value));
    int large = find_large(c, value);
    if (large >= 0)
        return g_strdup(g_ptr_array_index(c->texts, (guint)large));
    if (value == truncf(value) && fabsf(value) < EXACT_MAX)
        return g_strdup_printf("%.0f", (double)value);
    return g_strdup_printf("%.6g", (double)value);
}

const char *column_next_word(const char *name, char word[WORD_SIZE])
{
    size_t count = 0;
    while (*name != '\0' && !isalpha((unsigned char)*name))
        name++;
    for (const char *begin = name; isalpha((unsigned char)*name); name++) {
        if (name > begin && isupper((unsigned char)*name) && islower((unsigned char)name[-1]))
            break;
        if (count < WORD_SIZE - 1)
            word[count++] = (char)tolower((unsigned char)*name);
    }
    word[count] = '\0';
    return name;
}

bool column_word_is_among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static bool has_word(const char *name, const char *const *words, size_t count)
{
    char word[WORD_SIZE];
    for (const char *rest = column_next_word(name, word); *word != '\0'; rest = column_next_word(rest, word))
        if (column_word_is_among(word, words, count))
            return true;
    return false;
}

bool column_names_server(const column *c)
{
    static const char *const servers[] = {"server",  "upstream", "backend", "peer", "target",
                                          "replica", "node",     "worker",  "shard"};
    static const char *const others[] = {"id", "name", "version", "port", "client", "software"};
    return has_word(c->name, servers, G_N_ELEMENTS(servers)) && !has_word(c->name, others, G_N_ELEMENTS(others));
}

bool column_names_host(const column *c)
{
    static const char *const hosts[] = {"host", "hostname", "machine"};
    static const char *const others[] = {"client", "remote", "from", "source", "src"};
    return has_word(c->name, hosts, G_N_ELEMENTS(hosts)) && !has_word(c->name, others, G_N_ELEMENTS(others));
}
