#include "config.h"

#include "transport/tls_names.h"

#include "transport/openssl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_SIZE = 512 };

typedef struct name {
    enum { NAME_DNS, NAME_ADDRESS, NAME_URI } kind;
    char text[NAME_SIZE];
} name;

/* Called for each name in a certificate until it returns true. */
typedef bool (*name_check)(const name *n, const void *user);

/* Copies a name. Returns false if it is invalid, for example with a NUL, which would seem to end the name. */
static bool name_set(name *n, int kind, const void *text, int size)
{
    if (text == NULL || size <= 0 || size >= NAME_SIZE || memchr(text, '\0', (size_t)size) != NULL)
        return false;
    n->kind = kind;
    memcpy(n->text, text, (size_t)size);
    n->text[size] = '\0';
    return true;
}

static bool check_alternative(const GENERAL_NAME *general, name_check check, const void *user)
{
    name n;
    if (general->type == GEN_IPADD) {
        const unsigned char *bytes = ASN1_STRING_get0_data(general->d.iPAddress);
        int size = ASN1_STRING_length(general->d.iPAddress);
        int family = size == 4 ? AF_INET : size == 16 ? AF_INET6 : -1;
        n.kind = NAME_ADDRESS;
        return family != -1 && inet_ntop(family, bytes, n.text, sizeof n.text) != NULL && check(&n, user);
    }
    if (general->type != GEN_DNS && general->type != GEN_URI)
        return false;
    const ASN1_STRING *text = general->d.ia5;
    return name_set(&n, general->type == GEN_DNS ? NAME_DNS : NAME_URI, ASN1_STRING_get0_data(text),
                    ASN1_STRING_length(text)) &&
           check(&n, user);
}

static bool check_common_name(const X509_NAME_ENTRY *entry, name_check check, const void *user)
{
    name n;
    unsigned char *text = NULL;
    int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
    bool found = name_set(&n, NAME_DNS, text, size) && check(&n, user);
    OPENSSL_free(text);
    return found;
}

static bool any_name(X509 *certificate, name_check check, const void *user)
{
    bool found = false;
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++)
        found = check_alternative(sk_GENERAL_NAME_value(names, i), check, user);
    GENERAL_NAMES_free(names);
    const X509_NAME *subject = X509_get_subject_name(certificate);
    for (int i = -1; !found && (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;)
        found = check_common_name(X509_NAME_get_entry(subject, i), check, user);
    return found;
}

/* Returns whether pattern, which may begin with "*." for one label, matches text. */
static bool covers(const char *pattern, const char *text)
{
    if (strncmp(pattern, "*.", 2) != 0)
        return strcasecmp(pattern, text) == 0;
    const char *dot = strchr(text, '.');
    return dot != NULL && dot != text && strcasecmp(pattern + 1, dot) == 0;
}

/* Returns whether both are the same address in any notation. */
static bool same_address(const char *a, const char *b)
{
    unsigned char left[16], right[16];
    if (inet_pton(AF_INET, a, left) == 1 && inet_pton(AF_INET, b, right) == 1)
        return memcmp(left, right, 4) == 0;
    return inet_pton(AF_INET6, a, left) == 1 && inet_pton(AF_INET6, b, right) == 1 && memcmp(left, right, 16) == 0;
}

static bool matches_one(const name *n, const void *user)
{
    const char *pattern = user;
    return n->kind == NAME_ADDRESS ? same_address(pattern, n->text)
           : n->kind == NAME_URI   ? strcmp(pattern, n->text) == 0
                                   : strchr(n->text, '*') == NULL && covers(pattern, n->text);
}

bool nl_tls_names_match(X509 *certificate, const char *patterns)
{
    char pattern[NAME_SIZE];
    for (size_t size; *patterns != '\0'; patterns += size + (patterns[size] == ',')) {
        size = strcspn(patterns, ",");
        if (size == 0 || size >= sizeof pattern)
            continue;
        memcpy(pattern, patterns, size);
        pattern[size] = '\0';
        if (any_name(certificate, matches_one, pattern))
            return true;
    }
    return false;
}

static bool includes_one(const name *n, const void *user)
{
    const char *wanted = user;
    return n->kind == NAME_ADDRESS ? same_address(n->text, wanted)
                                   : n->kind == NAME_DNS && wanted[0] != '*' && covers(n->text, wanted);
}

bool nl_tls_names_include(X509 *certificate, const char *text, size_t size)
{
    name wanted;
    return size < NAME_SIZE && name_set(&wanted, NAME_DNS, text, (int)size) &&
           any_name(certificate, includes_one, wanted.text);
}

void nl_tls_names_make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

typedef struct name_list {
    char *out;
    size_t size;
} name_list;

/*
 * Appends a name unless the list already has it. (The common name is often repeated.) Returns true if the name does not
 * fit.
 */
static bool append_name(const name *n, const void *user)
{
    const name_list *list = user;
    const size_t used = strlen(list->out), length = strlen(n->text);
    const char *found = strstr(list->out, n->text);
    if (found != NULL && (found == list->out || found[-1] == ' ') && strchr(",", found[length]) != NULL)
        return false;
    if (used + length + sizeof ", ..." > list->size) {
        snprintf(list->out + used, list->size - used, "%s...", used > 0 ? ", " : "");
        return true;
    }
    snprintf(list->out + used, list->size - used, "%s%s", used > 0 ? ", " : "", n->text);
    return false;
}

void nl_tls_names_print(X509 *certificate, char *out, size_t size)
{
    *out = '\0';
    any_name(certificate, append_name, &(name_list){out, size});
    nl_tls_names_make_printable(out);
}
