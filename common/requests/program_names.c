#include "config.h"

#include "requests/program_names.h"

#include <glib.h>
#include <string.h>

/* Lengths of the random parts of a pod's name. */
enum { POD_HASH_MIN = 8, POD_HASH_MAX = 10, POD_SUFFIX = 5 };

/* The characters in random parts of the names of pods (k8s.io/apimachinery/pkg/util/rand). */
#define POD_CHARACTERS "bcdfghjklmnpqrstvwxz2456789"

/* Returns the length of a pod's name without its random parts, or 0 if the name is not the name of a pod. */
static size_t stem_of_pod(const char *name)
{
    size_t length = strlen(name);
    if (length <= POD_SUFFIX + 1 || name[length - POD_SUFFIX - 1] != '-' ||
        strspn(name + length - POD_SUFFIX, POD_CHARACTERS) != POD_SUFFIX)
        return 0;
    size_t hash_end = length - POD_SUFFIX - 1, hash = hash_end;
    while (hash > 0 && name[hash - 1] != '-')
        hash--;
    size_t hash_length = hash_end - hash;
    return hash > 1 && hash_length >= POD_HASH_MIN && hash_length <= POD_HASH_MAX &&
                   strspn(name + hash, POD_CHARACTERS) >= hash_length
               ? hash
               : 0;
}

const char *program_find_pattern(const char *name, bool all)
{
    GString *text = g_string_new("");
    size_t pod = stem_of_pod(name), length = strlen(name), last = length;
    bool found = pod > 0, letters = false;
    while (last > 0 && !g_ascii_isdigit(name[last - 1]))
        last--;
    while (last > 0 && g_ascii_isdigit(name[last - 1]))
        last--;
    for (size_t i = 0; i < (pod > 0 ? pod : length); i++) {
        letters = letters || g_ascii_isalpha(name[i]);
        if (!g_ascii_isdigit(name[i]) || pod > 0 || (!all && i < last)) {
            g_string_append_c(text, name[i]);
            continue;
        }
        found = true;
        g_string_append_c(text, '*');
        while (i + 1 < length && g_ascii_isdigit(name[i + 1]))
            i++;
    }
    if (pod > 0)
        g_string_append_c(text, '*');
    const char *pattern = found && letters ? g_intern_string(text->str) : NULL;
    g_string_free(text, TRUE);
    return pattern;
}

const char *program_pattern(const char *name)
{
    for (const char *next; (next = program_find_pattern(name, true)) != NULL;)
        name = next;
    return g_intern_string(name);
}
