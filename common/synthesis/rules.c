#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "record/field_name.h"

#include <stdlib.h>
#include <string.h>

/* The rules being read, and the current line. */
typedef struct reading {
    nl_synthesis *s;
    const nl_sections *sections;
    unsigned line;
} reading;

#define WRONG(r, ...) nl_sections_error((r)->sections, (r)->line, __VA_ARGS__)

static void *add_element(void *list, size_t count, size_t size)
{
    list = nl_memory_check(reallocarray(list, count + 1, size));
    return list;
}

static unsigned name_number(nl_synthesis *s, const char *name)
{
    for (size_t i = 0; i < s->name_count; i++)
        if (strcmp(s->names[i], name) == 0)
            return (unsigned)i;
    s->names = add_element(s->names, s->name_count, sizeof *s->names);
    s->names[s->name_count] = nl_memory_check(strdup(name));
    return (unsigned)s->name_count++;
}

static bool is_name(const char *name)
{
    return nl_is_name(nl_string_of(name));
}

static bool read_field_name(reading *r, const char *name, unsigned *number)
{
    if (name == NULL || !is_name(name))
        return WRONG(r, "expected a field name instead of \"%s\"", name != NULL ? name : "");
    *number = name_number(r->s, name);
    return true;
}

static bool read_duration(const reading *r, const char *text, int64_t *duration_ns)
{
    return (nl_duration_parse(text, duration_ns) && *duration_ns > 0) ||
           WRONG(r, "\"%s\" is not a duration; use, for example, 500ms or 2s", text);
}

/* ---- fields of derived records ---- */

static const table *find_table(const nl_synthesis *s, const char *name, size_t size)
{
    for (size_t i = 0; i < s->table_count; i++)
        if (strlen(s->tables[i].name) == size && memcmp(s->tables[i].name, name, size) == 0)
            return &s->tables[i];
    return NULL;
}

/*
 * Reads a source with a conversion, such as program(X) or TABLE[X]. Sets m->convert and m->table. Returns X, which the
 * caller frees. Returns NULL if the source is invalid.
 */
static char *read_conversion(reading *r, making *m, const char *from)
{
    size_t open = strcspn(from, "(["), size = strlen(from);
    if (from[open] == '\0' || from[size - 1] != (from[open] == '(' ? ')' : ']'))
        return NULL;
    m->table = from[open] == '[' ? find_table(r->s, from, open) : NULL;
    m->convert = m->table != NULL ? convert_by_table : from[open] == '(' ? find_converter(from, open) : NULL;
    r->s->wants_programs |= m->convert == convert_program;
    r->s->wants_symbols |= m->convert == convert_symbol;
    return m->convert != NULL ? strndup(from + open + 1, size - open - 2) : NULL;
}

static bool read_field_source(reading *r, making *m, const char *from)
{
    if (*from == '\'') {
        m->literal = value_of_text(r->s->texts, (nl_string){from + 1, strlen(from + 1)});
        m->field = NO_FIELD;
        return true;
    }
    char *inside = NULL;
    if (strpbrk(from, "([") != NULL && (inside = read_conversion(r, m, from)) == NULL)
        return WRONG(r,
                     "unknown source \"%s\"; expected KIND(FIELD), where KIND is program, address, syscall, symbol, "
                     "hexadecimal or "
                     "device, or TABLE[FIELD] of a preceding [table TABLE]",
                     from);
    const char *name = inside != NULL ? inside : from;
    m->side = strncmp(name, "begin.", 6) == 0 ? SIDE_BEGIN : strncmp(name, "end.", 4) == 0 ? SIDE_END : SIDE_ANY;
    bool ok = read_field_name(r, m->side != SIDE_ANY ? strchr(name, '.') + 1 : name, &m->field);
    free(inside);
    return ok;
}

/* Reads NAME or NAME SOURCE. Returns false on failure. */
static bool read_field(reading *r, rule *into, const char *text)
{
    char *name = nl_word_next(&text, ""), *from = nl_word_next(&text, ""), *rest = nl_word_next(&text, "");
    making m = {.name = name};
    bool ok = name != NULL && is_name(name) && rest == NULL;
    if (!ok)
        WRONG(r, "expected \"field = NAME\" or \"field = NAME SOURCE\"");
    ok = ok && read_field_source(r, &m, from != NULL ? from : name);
    if (ok) {
        into->makings = add_element(into->makings, into->making_count, sizeof *into->makings);
        into->makings[into->making_count++] = m;
    } else {
        free(name);
    }
    free(from);
    free(rest);
    return ok;
}

/* ---- clauses ---- */

static void add_patterns(clause *c, char *events)
{
    for (char *save = NULL, *one = strtok_r(events, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
        c->patterns = add_element(c->patterns, c->pattern_count, sizeof *c->patterns);
        c->patterns[c->pattern_count] = nl_memory_check(strdup(one));
        char *colon = strchr(c->patterns[c->pattern_count++], ':');
        if (colon != NULL)
            *colon = '.';
    }
}

static bool read_keys(reading *r, clause *c, char *fields)
{
    bool ok = fields != NULL;
    if (!ok)
        return WRONG(r, "key requires field names, separated by commas");
    for (char *save = NULL, *one = strtok_r(fields, ",", &save); ok && one != NULL; one = strtok_r(NULL, ",", &save)) {
        if (c->key_count == KEYS_MAX)
            return WRONG(r, "key: more than %d fields", KEYS_MAX);
        ok = read_field_name(r, one, &c->keys[c->key_count++]);
    }
    return ok;
}

static bool read_carrier(reading *r, carrier *to, const char **text)
{
    char *kind = nl_word_next(text, ""), *field = nl_word_next(text, "");
    bool ok = kind != NULL && read_field_name(r, field, &to->field);
    if (ok)
        to->kind = value_of_text(r->s->texts, nl_string_of(kind));
    else
        WRONG(r, "from and to require KIND FIELD, as in \"from thread TID\"");
    free(kind);
    free(field);
    return ok;
}

/* Reads the name of a state, and sets *number to its index. Returns false on failure. */
static bool read_label(reading *r, rule *into, const char *label, unsigned *number)
{
    if (label == NULL || !is_name(label))
        return WRONG(r, "expected \"STATE: EVENT key FIELD\"");
    for (*number = 0; *number < into->label_count; (*number)++)
        if (strcmp(into->labels[*number], label) == 0)
            return true;
    if (into->label_count == LABELS_MAX)
        return WRONG(r, "more than %d states", LABELS_MAX);
    into->labels[into->label_count] = nl_memory_check(strdup(label));
    into->label_count++;
    return true;
}

/* Reads a word after the events: key, from, to, id, as, unless or move. Returns false on failure. */
static bool read_clause_word(reading *r, clause *c, const char *word, const char **text)
{
    char *next = NULL;
    bool ok;
    if (strcmp(word, "key") == 0)
        ok = read_keys(r, c, next = nl_word_next(text, ""));
    else if (strcmp(word, "from") == 0)
        ok = read_carrier(r, &c->from, text);
    else if (strcmp(word, "to") == 0)
        ok = read_carrier(r, &c->to, text);
    else if (strcmp(word, "id") == 0)
        ok = read_field_name(r, next = nl_word_next(text, ""), &c->id);
    else if (strcmp(word, "as") == 0)
        ok = (c->as = nl_word_next(text, "")) != NULL && is_name(c->as) ? true : WRONG(r, "expected \"as NAME\"");
    else if (strcmp(word, "unless") == 0)
        ok = read_label(r, c->rule, next = nl_word_next(text, ""), &c->unless);
    else if (strcmp(word, "move") == 0)
        ok = c->move = true;
    else
        ok = WRONG(r, "unknown word \"%s\"; expected key, from, to, id, as, unless, move or where", word);
    free(next);
    return ok;
}

static bool read_filter(reading *r, clause *c, const char *text)
{
    c->where = nl_filter_parse(text);
    if (c->where != NULL)
        return true;
    return WRONG(r, "%s", nl_error_message());
}

static bool read_clause(reading *r, rule *into, role role, unsigned label, const char *text)
{
    into->clauses = add_element(into->clauses, into->clause_count, sizeof *into->clauses);
    clause *c = &into->clauses[into->clause_count++];
    *c = (clause){.rule = into,
                  .role = role,
                  .label = label,
                  .unless = NO_FIELD,
                  .line = r->line,
                  .id = NO_FIELD,
                  .from.field = NO_FIELD,
                  .to.field = NO_FIELD};
    char *events = nl_word_next(&text, ""), *word = NULL;
    bool ok = events != NULL;
    if (!ok)
        WRONG(r, "expected an event name");
    else
        add_patterns(c, events);
    free(events);
    while (ok && (word = nl_word_next(&text, "")) != NULL) {
        bool is_where = strcmp(word, "where") == 0;
        ok = is_where ? read_filter(r, c, text) : read_clause_word(r, c, word, &text);
        free(word);
        if (is_where)
            break;
    }
    return ok;
}

/* Reads STATE: CLAUSE. Returns false on failure. */
static bool read_labelled(reading *r, rule *into, role role, const char *text)
{
    const char *colon = strchr(text, ':');
    char *label = colon != NULL ? strndup(text, (size_t)(colon - text)) : NULL;
    unsigned number = 0;
    bool ok = read_label(r, into, label, &number);
    free(label);
    return ok && read_clause(r, into, role, number, colon + 1);
}

/* ---- rules ---- */

typedef struct word_role {
    const char *word;
    role role;
} word_role;

static const word_role of_roles[] = {{"of", ROLE_OF}, {0}};
static const word_role span_roles[] = {{"begin", ROLE_BEGIN}, {"end", ROLE_END}, {"cancel", ROLE_CANCEL}, {0}};
static const word_role state_roles[] = {{"state", ROLE_STATE},
                                        {"wait", ROLE_WAIT},
                                        {"mark", ROLE_MARK},
                                        {"unmark", ROLE_UNMARK},
                                        {"becomes", ROLE_BECOMES},
                                        {"segment", ROLE_SEGMENT},
                                        {0}};
static const word_role follow_roles[] = {{"begin", ROLE_BEGIN}, {"pass", ROLE_PASS}, {"step", ROLE_STEP},
                                         {"leave", ROLE_LEAVE}, {"end", ROLE_END},   {0}};

static bool read_choice(reading *r, const char *value, const char *no, const char *yes, bool *chosen)
{
    *chosen = strcmp(value, yes) == 0;
    return *chosen || strcmp(value, no) == 0 || WRONG(r, "unknown value \"%s\"; expected %s or %s", value, no, yes);
}

/* Reads the "emit" setting of a states rule, which is segments, changes or both. Returns false on failure. */
static bool read_emit(reading *r, rule *into, const char *value)
{
    into->segments = strcmp(value, "changes") != 0;
    into->changes = strcmp(value, "segments") != 0;
    return !into->segments || !into->changes || strcmp(value, "both") == 0 ||
           WRONG(r, "unknown value \"%s\"; expected segments, changes or both", value);
}

static bool read_option(reading *r, rule *into, const nl_setting *setting)
{
    const char *key = setting->key, *value = setting->value;
    bool is_sum = rule_is_sum(into);
    if (strcmp(key, "field") == 0)
        return read_field(r, into, value);
    if (strcmp(key, "longest") == 0 && (into->kind == RULE_SPAN || into->kind == RULE_FOLLOW))
        return read_duration(r, value, &into->longest_ns);
    if (strcmp(key, "again") == 0 && into->kind == RULE_SPAN)
        return read_choice(r, value, "restart", "keep", &into->keep);
    if (strcmp(key, "emit") == 0 && into->kind == RULE_SPAN)
        return read_choice(r, value, "end", "pair", &into->pair);
    if (strcmp(key, "emit") == 0 && into->kind == RULE_STATES)
        return read_emit(r, into, value);
    if (strcmp(key, "marks") == 0 && into->kind == RULE_STATES)
        return read_choice(r, value, "waits", "always", &into->overlay);
    if (strcmp(key, "value") == 0 && is_sum)
        return read_field_name(r, value, &into->value_field);
    if (strcmp(key, "every") == 0 && is_sum)
        return read_duration(r, value, &into->every_ns);
    return WRONG(r, "this kind of rule has no setting \"%s\"", key);
}

/* The kinds of rules, indexed by rule_kind. */
static const struct {
    const char *name;
    void (*take)(nl_synthesis *s, const clause *c, event *e);
    void (*free_entry)(void *e);
    const word_role *roles; /* roles of the settings that are clauses */
    role required;
    const char *required_name;
} rule_types[] = {{"make", make_take, NULL, of_roles, ROLE_OF, "of"},
                  {"span", span_take, span_free, span_roles, ROLE_BEGIN, "begin"},
                  {"sum", sum_take, sum_free, of_roles, ROLE_OF, "of"},
                  {"rate", sum_take, sum_free, of_roles, ROLE_OF, "of"},
                  {"histogram", sum_take, sum_free, of_roles, ROLE_OF, "of"},
                  {"states", states_take, states_free, state_roles, ROLE_STATE, "state"},
                  {"follow", follow_take, follow_free, follow_roles, ROLE_BEGIN, "begin"}};

static bool read_setting(reading *r, rule *into, const nl_setting *setting)
{
    for (const word_role *at = rule_types[into->kind].roles; at->word != NULL; at++)
        if (strcmp(at->word, setting->key) == 0)
            return into->kind == RULE_STATES ? read_labelled(r, into, at->role, setting->value)
                                             : read_clause(r, into, at->role, 0, setting->value);
    return read_option(r, into, setting);
}

static size_t count_of_role(const rule *rule, role role)
{
    size_t count = 0;
    for (size_t i = 0; i < rule->clause_count; i++)
        count += rule->clauses[i].role == role;
    return count;
}

static bool check_carriers(reading *r, const clause *c)
{
    bool from = c->from.field != NO_FIELD, to = c->to.field != NO_FIELD;
    if (c->rule->kind != RULE_FOLLOW)
        return (!from && !to) || WRONG(r, "\"from\" and \"to\" are valid only in [follow]");
    if (c->role == ROLE_BEGIN)
        return (to && !from) || WRONG(r, "begin requires \"to KIND FIELD\", and does not allow \"from\"");
    if (c->role == ROLE_PASS)
        return (from && to) || WRONG(r, "pass requires \"from KIND FIELD to KIND FIELD\"");
    return (from && !to) || WRONG(r, "end, step and leave require \"from KIND FIELD\", and do not allow \"to\"");
}

/* Checks that the rule has the required settings, and that all keys have the same number of fields. Sets the default
 * interval of a rate, 1 s. */
static bool check_rule(reading *r, rule *rule)
{
    if (count_of_role(rule, rule_types[rule->kind].required) == 0)
        return WRONG(r, "[%s]: missing %s =", rule->name, rule_types[rule->kind].required_name);
    if (rule->kind == RULE_SPAN && count_of_role(rule, ROLE_END) == 0)
        return WRONG(r, "[%s]: missing end =", rule->name);
    if (rule->kind == RULE_HISTOGRAM && rule->value_field == NO_FIELD)
        return WRONG(r, "[%s]: missing value =", rule->name);
    for (size_t i = 0; i < rule->clause_count; i++) {
        const clause *c = &rule->clauses[i];
        r->line = c->line;
        if (c->key_count != rule->clauses[0].key_count)
            return WRONG(r, "the key has %u field%s here, but %u in line %u", c->key_count, nl_plural(c->key_count),
                         rule->clauses[0].key_count, rule->clauses[0].line);
        if (rule->kind == RULE_STATES && c->key_count == 0)
            return WRONG(r, "missing key FIELD, which identifies the owner of the state");
        if (!check_carriers(r, c))
            return false;
    }
    if (rule->kind == RULE_RATE && rule->every_ns == 0)
        rule->every_ns = NL_NS_PER_SECOND;
    return true;
}

static bool read_rule(reading *r, const nl_section *section, rule_kind kind)
{
    rule *into = &r->s->rules[r->s->rule_count++];
    *into = (rule){.kind = kind,
                   .take = rule_types[kind].take,
                   .entries = map_new(rule_types[kind].free_entry),
                   .name = nl_memory_check(strdup(section->name)),
                   .value_field = NO_FIELD,
                   .next_ns = INT64_MIN,
                   .segments = true};
    if (!is_name(into->name))
        return WRONG(r, "[%s NAME]: missing or invalid NAME, the name of the derived events", section->kind);
    for (size_t i = 0; i < section->setting_count; i++) {
        r->line = section->settings[i].line;
        if (!read_setting(r, into, &section->settings[i]))
            return false;
    }
    r->line = section->line;
    return check_rule(r, into);
}

static bool read_table(reading *r, const nl_section *section)
{
    table *t = &r->s->tables[r->s->table_count++];
    *t = (table){.name = nl_memory_check(strdup(section->name)),
                 .keys = nl_memory_check(calloc(section->setting_count + 1, sizeof *t->keys)),
                 .values = nl_memory_check(calloc(section->setting_count + 1, sizeof *t->values))};
    if (!is_name(t->name))
        return WRONG(r, "[table NAME]: missing or invalid NAME");
    for (size_t i = 0; i < section->setting_count; i++) {
        const char *k = section->settings[i].key, *v = section->settings[i].value;
        t->keys[i] = value_of_text(r->s->texts, nl_string_of(k));
        t->values[i] = value_of_text(r->s->texts, nl_string_of(v));
    }
    t->count = section->setting_count;
    return true;
}

/*
 * Reads "learn = FIELD FIELD", which means that events with these fields contain the ID and the name of a thread.
 * Returns false on failure.
 */
static bool read_programs(reading *r, const nl_section *section)
{
    for (size_t i = 0; i < section->setting_count; i++) {
        const nl_setting *setting = &section->settings[i];
        const char *at = setting->value;
        unsigned place = 0;
        r->line = setting->line;
        while (place < LEARN_MAX && r->s->learn_tid[place] != NO_FIELD)
            place++;
        if (strcmp(setting->key, "learn") != 0 || place == LEARN_MAX)
            return WRONG(r, "expected at most four \"learn = TID.FIELD NAME.FIELD\" lines");
        char *tid = nl_word_next(&at, ""), *name = nl_word_next(&at, "");
        bool ok =
            read_field_name(r, tid, &r->s->learn_tid[place]) && read_field_name(r, name, &r->s->learn_name[place]);
        free(tid);
        free(name);
        if (!ok)
            return false;
    }
    return true;
}

static bool read_section(reading *r, const nl_section *section)
{
    /* Other modules read these sections. */
    static const char *const others[] = {"rules", "event", "parameter", "report", "workload", "kernel"};
    r->line = section->line;
    for (unsigned i = 0; i < sizeof rule_types / sizeof *rule_types; i++)
        if (strcmp(section->kind, rule_types[i].name) == 0)
            return read_rule(r, section, (rule_kind)i);
    if (strcmp(section->kind, "table") == 0)
        return read_table(r, section);
    if (strcmp(section->kind, "programs") == 0)
        return read_programs(r, section);
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(section->kind, others[i]) == 0)
            return true;
    return WRONG(r, "[%s]: unknown section", section->kind);
}

/* Returns whether a clause may concern events that it does not name. */
static bool has_wildcard(const clause *c)
{
    for (size_t i = 0; i < c->pattern_count; i++)
        if (strpbrk(c->patterns[i], "*?[\\") != NULL)
            return true;
    return false;
}

/*
 * Returns the first clause beyond CLAUSES_MAX that concerns the events with a name, or NULL. If `name` is NULL, counts
 * the clauses that may concern an event that no clause names.
 */
static const clause *find_excess(const nl_synthesis *s, const char *name)
{
    unsigned count = 0;
    for (size_t i = 0; i < s->rule_count; i++)
        for (size_t k = 0; k < s->rules[i].clause_count; k++) {
            const clause *c = &s->rules[i].clauses[k];
            count += name != NULL ? clause_concerns(c, name) : has_wildcard(c);
            if (count > CLAUSES_MAX)
                return c;
        }
    return NULL;
}

/* Checks that no event can concern more than CLAUSES_MAX clauses, because event.mask has CLAUSES_MAX bits. */
static bool check_clause_counts(reading *r)
{
    const nl_synthesis *s = r->s;
    const char *name = "an event";
    const clause *excess = find_excess(s, NULL);
    for (size_t i = 0; i < s->rule_count && excess == NULL; i++)
        for (size_t k = 0; k < s->rules[i].clause_count && excess == NULL; k++)
            for (size_t p = 0; p < s->rules[i].clauses[k].pattern_count && excess == NULL; p++) {
                name = s->rules[i].clauses[k].patterns[p];
                excess = find_excess(s, name);
            }
    if (excess == NULL)
        return true;
    r->line = excess->line;
    return WRONG(r, "more than %d clauses concern %s", CLAUSES_MAX, name);
}

bool rules_read(nl_synthesis *s, const nl_sections *sections)
{
    reading r = {.s = s, .sections = sections};
    s->rules = nl_memory_check(calloc(sections->count + 1, sizeof *s->rules));
    s->tables = nl_memory_check(calloc(sections->count + 1, sizeof *s->tables));
    s->tid_field = name_number(s, "TID");
    for (unsigned i = 0; i < LEARN_MAX; i++)
        s->learn_tid[i] = NO_FIELD;
    for (size_t i = 0; i < sections->count; i++)
        if (!read_section(&r, &sections->list[i]))
            return false;
    return check_clause_counts(&r);
}

static void free_rule(rule *r)
{
    for (size_t i = 0; i < r->clause_count; i++) {
        for (size_t j = 0; j < r->clauses[i].pattern_count; j++)
            free(r->clauses[i].patterns[j]);
        free(r->clauses[i].patterns);
        free(r->clauses[i].as);
        nl_filter_free(r->clauses[i].where);
    }
    for (size_t i = 0; i < r->making_count; i++)
        free(r->makings[i].name);
    for (unsigned i = 0; i < r->label_count; i++)
        free(r->labels[i]);
    if (r->entries != NULL)
        g_hash_table_destroy(r->entries);
    free(r->clauses);
    free(r->makings);
    free(r->name);
}

void rules_free(nl_synthesis *s)
{
    for (size_t i = 0; i < s->rule_count; i++)
        free_rule(&s->rules[i]);
    for (size_t i = 0; i < s->table_count; i++) {
        free(s->tables[i].name);
        free(s->tables[i].keys);
        free(s->tables[i].values);
    }
    for (size_t i = 0; i < s->name_count; i++)
        free(s->names[i]);
    free(s->rules);
    free(s->tables);
    free(s->names);
}
