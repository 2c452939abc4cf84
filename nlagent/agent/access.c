#include "config.h"

#include "agent/access.h"

#include "program/program.h"
#include "service/listener.h"
#include "service/network.h"
#include "base/error.h"
#include "base/memory.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_MIN = 16 };

typedef enum entry_kind { TOKEN, CERTIFICATE, NETWORK, LOOPBACK, KIND_COUNT } entry_kind;

typedef struct entry {
    entry_kind kind;
    char *text; /* the token or the glob */
    char *name; /* name of the token's owner */
    network net;
    unsigned rights;
} entry;

struct access {
    entry *entries;
    size_t count;
    bool has_loopback;
    bool has_file;
};

static unsigned read_right(const char *word)
{
    static const struct {
        const char *name;
        unsigned rights;
    } known[] = {
        {"none", 0},
        {"summaries", RIGHT_SUMMARIES},
        {"read", RIGHT_SUMMARIES | RIGHT_READ},
        {"start", RIGHT_SUMMARIES | RIGHT_READ | RIGHT_START},
        {"register", RIGHT_REGISTER},
        {"collect", RIGHT_COLLECT},
        {"all", RIGHT_ALL},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(word, known[i].name) == 0)
            return known[i].rights;
    return ~0u;
}

/* Returns the next word, or NULL at the end of the line. */
static char *next_word(char **rest)
{
    char *word;
    do
        word = strsep(rest, " \t\r\n");
    while (word != NULL && *word == '\0');
    return word;
}

static bool read_entry(access_list *a, char *line)
{
    static const char *const kinds[] = {"token", "certificate", "network", "loopback"};
    entry e = {0};
    line[strcspn(line, "#")] = '\0';
    const char *kind = next_word(&line);
    if (kind == NULL)
        return true;
    int i = 0;
    while (i < KIND_COUNT && strcmp(kind, kinds[i]) != 0)
        i++;
    if (i == KIND_COUNT)
        return nl_error_false(NL_ERROR_INVALID, "unknown kind \"%s\"; use token, certificate, network or loopback",
                              kind);
    e.kind = i;
    const char *subject = e.kind != LOOPBACK ? next_word(&line) : kind;
    const char *name = e.kind == TOKEN ? next_word(&line) : subject;
    if (subject == NULL || name == NULL)
        return nl_error_false(NL_ERROR_INVALID, "%s: missing value", kind);
    if (e.kind == NETWORK && !network_parse(subject, &e.net))
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a network; use ADDRESS or ADDRESS/BITS", subject);
    if (e.kind == TOKEN && strlen(subject) < TOKEN_MIN)
        return nl_error_false(NL_ERROR_INVALID, "the token is too short; use at least %d bytes", TOKEN_MIN);
    const char *word = next_word(&line);
    if (word == NULL)
        return nl_error_false(NL_ERROR_INVALID, "%s: missing rights", kind);
    for (; word != NULL; word = next_word(&line)) {
        unsigned right = read_right(word);
        if (right == ~0u)
            return nl_error_false(NL_ERROR_INVALID,
                                  "unknown right \"%s\"; use summaries, read, start, register, collect, "
                                  "all or none",
                                  word);
        e.rights |= right;
    }
    e.text = program_copy(subject);
    e.name = program_copy(name);
    a->entries = nl_memory_check(realloc(a->entries, (a->count + 1) * sizeof *a->entries));
    a->entries[a->count++] = e;
    a->has_loopback = a->has_loopback || e.kind == LOOPBACK;
    return true;
}

access_list *access_read(const char *path)
{
    access_list *a = nl_memory_check(calloc(1, sizeof *a));
    if (path == NULL)
        return a;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        nl_error_set_errno("%s", path);
        access_free(a);
        return NULL;
    }
    char *line = NULL;
    size_t capacity = 0;
    unsigned number = 0;
    bool good = true;
    a->has_file = true;
    while (good && getline(&line, &capacity, file) >= 0) {
        number++;
        good = read_entry(a, line);
    }
    free(line);
    fclose(file);
    if (good)
        return a;
    nl_error_prepend("%s:%u", path, number);
    access_free(a);
    return NULL;
}

void access_free(access_list *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->count; i++) {
        free(a->entries[i].text);
        free(a->entries[i].name);
    }
    free(a->entries);
    free(a);
}

/* Returns whether two tokens are equal. The running time does not depend on the number of equal bytes, so that a client
 * cannot guess a token one byte at a time. */
static bool same_token(const char *a, const char *b)
{
    size_t size = strlen(a);
    unsigned char differ = strlen(b) != size;
    for (size_t i = 0; i < size && b[i] != '\0'; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

unsigned access_rights(const access_list *a, const struct sockaddr *peer, const char *token, const char *certificate,
                       char name[ACCESS_NAME_SIZE])
{
    bool local = network_is_local(peer);
    unsigned rights = local && !a->has_loopback ? RIGHT_ALL : 0;
    if (!local && !a->has_file)
        rights = RIGHT_SUMMARIES | RIGHT_READ;
    listener_address_text(peer, name, ACCESS_NAME_SIZE);
    if (strrchr(name, ':') != NULL)
        *strrchr(name, ':') = '\0'; /* remove the port, because the name stands for a host, not for a connection */
    if (certificate != NULL)
        snprintf(name, ACCESS_NAME_SIZE, "%s", certificate);
    for (size_t i = 0; i < a->count; i++) {
        const entry *e = &a->entries[i];
        bool matches = e->kind == TOKEN         ? token != NULL && same_token(e->text, token)
                       : e->kind == CERTIFICATE ? certificate != NULL && fnmatch(e->text, certificate, 0) == 0
                       : e->kind == NETWORK     ? network_contains(&e->net, peer)
                                                : local;
        if (!matches)
            continue;
        rights |= e->rights;
        if (e->kind == TOKEN)
            snprintf(name, ACCESS_NAME_SIZE, "%s", e->name);
    }
    return rights;
}
