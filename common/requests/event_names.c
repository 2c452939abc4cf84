#include "config.h"

#include "requests/event_names.h"

#include "clocks/name_table.h"

#include <ctype.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE_MAX = 256 }; /* longer names neither begin nor end a span */

/* The properties of a name that are not in the table of texts. */
typedef struct name_kind {
    uint32_t span; /* number of the span's name, or of this name if its side is EVENT_SIDE_NONE */
    uint32_t pair; /* index in pairs */
    event_side side;
} name_kind;

/*
 * The names of the events that begin and end the spans with one name. The words in both names have the same family,
 * letter case and position.
 */
typedef struct name_pair {
    bool has[3];       /* indexed by event_side: the log has the name of this side */
    bool is_only_word; /* the names consist only of the word, such as Start and Done */
    uint32_t
        begin; /* if is_only_word and has[EVENT_SIDE_BEGIN]: the first name that begins a span; it is the span's name */
} name_pair;

struct event_names {
    name_table table;
    GArray *kinds;        /* name_kind, indexed by the number of the name */
    GArray *pairs;        /* name_pair */
    GHashTable *pair_ids; /* maps a key to its index in pairs + 1 */
};

/* A word in a name that begins or ends spans. Words of the same family form pairs. */
typedef struct side_word {
    const char *word; /* the word in lower case */
    event_side side;
    char family;
} side_word;

static const side_word side_words[] = {
    {"start", EVENT_SIDE_BEGIN, 's'},  {"begin", EVENT_SIDE_BEGIN, 's'},   {"end", EVENT_SIDE_END, 's'},
    {"stop", EVENT_SIDE_END, 's'},     {"finish", EVENT_SIDE_END, 's'},    {"done", EVENT_SIDE_END, 's'},
    {"finished", EVENT_SIDE_END, 's'}, {"started", EVENT_SIDE_BEGIN, 's'}, {"request", EVENT_SIDE_BEGIN, 'r'},
    {"response", EVENT_SIDE_END, 'r'}, {"reply", EVENT_SIDE_END, 'r'},
};

event_names *event_names_new(void)
{
    event_names *t = g_new0(event_names, 1);
    t->kinds = g_array_new(FALSE, FALSE, sizeof(name_kind));
    t->pairs = g_array_new(FALSE, TRUE, sizeof(name_pair));
    t->pair_ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return t;
}

void event_names_free(event_names *t)
{
    if (t == NULL)
        return;
    name_table_free(&t->table);
    g_array_free(t->kinds, TRUE);
    g_array_free(t->pairs, TRUE);
    g_hash_table_destroy(t->pair_ids);
    g_free(t);
}

static bool is_separator(char c)
{
    return c != '\0' && strchr("._-:/ ", c) != NULL;
}

/*
 * Returns the letter case of the first `size` bytes of `text`: 'l' for lower case, 'U' for upper case, 'T' for
 * capitalized. Returns 0 if they have mixed case, or are not `word`, which has `size` bytes in lower case.
 */
static char word_case(const char *text, const char *word, size_t size)
{
    size_t upper = 0;
    for (size_t i = 0; i < size; i++) {
        if (tolower((unsigned char)text[i]) != word[i])
            return 0;
        upper += isupper((unsigned char)text[i]) != 0;
    }
    return upper == 0 ? 'l' : upper == size ? 'U' : upper == 1 && isupper((unsigned char)text[0]) ? 'T' : 0;
}

/*
 * Returns whether the side word at `offset` is at the start or end of the name, and separate from the rest. A separator
 * always separates it. A capitalized word is also separate if the case of the neighboring letter shows a new word.
 */
static bool is_whole_word(const char *name, size_t size, size_t offset, size_t word_size, char word_case)
{
    bool at_begin = offset == 0, at_end = offset + word_size == size;
    char before = at_begin ? '\0' : name[offset - 1], after = at_end ? '\0' : name[offset + word_size];
    bool begins = at_begin || is_separator(before) || (word_case == 'T' && !isupper((unsigned char)before));
    bool ends = at_end || is_separator(after) || (word_case == 'T' && isupper((unsigned char)after));
    return begins && ends && (at_begin || at_end);
}

/*
 * Finds the longest side word at the end of a name or, if the end has none, at its beginning. Sets *offset to its
 * position and *how to its letter case (see word_case). Returns NULL if the name has no side word.
 */
static const side_word *find_side_word(const char *name, size_t size, size_t *offset, char *how)
{
    const side_word *found = NULL;
    for (int at_end = 1; at_end >= 0 && found == NULL; at_end--)
        for (size_t i = 0; i < G_N_ELEMENTS(side_words); i++) {
            size_t word_size = strlen(side_words[i].word);
            if (word_size > size || (found != NULL && word_size < strlen(found->word)))
                continue;
            size_t place = at_end ? size - word_size : 0;
            char letters = word_case(name + place, side_words[i].word, word_size);
            if (letters == 0 || !is_whole_word(name, size, place, word_size, letters))
                continue;
            found = &side_words[i];
            *offset = place;
            *how = letters;
        }
    return found;
}

static uint32_t pair_of(event_names *t, const char *key)
{
    gpointer found = g_hash_table_lookup(t->pair_ids, key);
    if (found == NULL) {
        g_array_set_size(t->pairs, t->pairs->len + 1);
        found = GUINT_TO_POINTER(t->pairs->len);
        g_hash_table_insert(t->pair_ids, g_strdup(key), found);
    }
    return GPOINTER_TO_UINT(found) - 1;
}

/* Sets the properties of a name that has a side word. */
static void event_names_classify(event_names *t, uint32_t name)
{
    const char *text = t->table.texts[name];
    size_t size = strlen(text), offset;
    char how, key[KEY_SIZE_MAX + 8];
    const side_word *word = size < KEY_SIZE_MAX ? find_side_word(text, size, &offset, &how) : NULL;
    if (word == NULL)
        return;
    size_t word_size = strlen(word->word), rest = size - word_size;
    snprintf(key, sizeof key, "%.*s\1%c%c%s", (int)offset, text, how, word->family, text + offset + word_size);
    uint32_t pair = pair_of(t, key);
    name_pair *own = &g_array_index(t->pairs, name_pair, pair);
    if (rest == 0 && word->side == EVENT_SIDE_BEGIN && !own->has[EVENT_SIDE_BEGIN])
        own->begin = name;
    own->is_only_word = rest == 0;
    own->has[word->side] = true;
    /* The name of the span is the name without the word and its separator. */
    const char *begin = offset == 0 ? text + word_size : text;
    if (offset > 0 && rest > 1 && is_separator(begin[rest - 1]))
        rest--;
    else if (offset == 0 && rest > 1 && is_separator(*begin))
        begin++, rest--;
    uint32_t span = rest > 0 ? event_names_add(t, (nl_string){begin, rest}) : name;
    g_array_index(t->kinds, name_kind, name) = (name_kind){span, pair, word->side};
}

uint32_t event_names_add(event_names *t, nl_string name)
{
    static const nl_string none = {EVENT_NAME_NONE, sizeof EVENT_NAME_NONE - 1},
                           other = {NAME_OTHER, sizeof NAME_OTHER - 1};
    name = name.size == 0 || *name.data == '\0' ? none : name;
    size_t number = name_table_find(&t->table, name);
    if (number != NAME_NONE)
        return (uint32_t)number;
    if (t->table.count >= EVENT_NAMES_MAX - 1)
        name = other;
    number = name_table_add(&t->table, name);
    if (number == t->kinds->len) {
        name_kind kind = {.span = (uint32_t)number, .side = EVENT_SIDE_NONE};
        g_array_append_val(t->kinds, kind);
        event_names_classify(t, (uint32_t)number);
    }
    return (uint32_t)number;
}

const char *event_names_text(const event_names *t, uint32_t name)
{
    return t->table.texts[name];
}

event_side event_names_side(const event_names *t, uint32_t name, uint32_t *span)
{
    const name_kind *kind = &g_array_index(t->kinds, name_kind, name);
    *span = name;
    if (kind->side == EVENT_SIDE_NONE)
        return EVENT_SIDE_NONE;
    const name_pair *pair = &g_array_index(t->pairs, name_pair, kind->pair);
    if (!pair->has[EVENT_SIDE_BEGIN] || !pair->has[EVENT_SIDE_END])
        return EVENT_SIDE_NONE;
    *span = pair->is_only_word ? pair->begin : kind->span;
    return kind->side;
}

size_t event_names_count(const event_names *t)
{
    return t->kinds->len;
}
