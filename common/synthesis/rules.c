#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/memory.h"
#include "record/field_name.h"

#include <stdlib.h>
#include <string.h>

/* What is being read, for messages. */
typedef struct reading {
    nl_synthesis *s;
    const nl_sections *sections;
    unsigned line;
} reading;

#define WRONG(r, ...) nl_sections_error((r)->sections, (r)->line, __VA_ARGS__)

static void *more(void *list, size_t count, size_t size)
{
    list = nl_memory_check(reallocarray(list, count + 1, size));
    return list;
}

unsigned name_number(nl_synthesis *s, const char *name)
{
    for (size_t i = 0; i < s->name_count; i++)
        if (strcmp(s->names[i], name) == 0)
            return (unsigned)i;
    s->names = more(s->names, s->name_count, sizeof *s->names);
    s->names[s->name_count] = nl_memory_check(strdup(name));
    return (unsigned)s->name_count++;
}

static bool is_name(const char *name)
{
    return nl_is_name((nl_string){name, strlen(name)});
}

static bool read_field_name(reading *r, const char *name, unsigned *number)
{
    if (name == NULL || !is_name(name))
        return WRONG(r, "\"%s\": the name of a field is wanted", name != NULL ? name : "");
    *number = name_number(r->s, name);
    return true;
}

static bool read_duration(reading *r, const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && number * units[i].ns >= 1 && number * units[i].ns < 1e18) {
            *ns = (int64_t)(number * units[i].ns);
            return true;
        }
    return WRONG(r, "\"%s\": a time is wanted, as in 500ms or 2s", text);
}

/* ---- fields that are made ---- */

static const table *find_table(const nl_synthesis *s, const char *name, size_t size)
{
    for (size_t i = 0; i < s->table_count; i++)
        if (strlen(s->tables[i].name) == size && memcmp(s->tables[i].name, name, size) == 0)
            return &s->tables[i];
    return NULL;
}

static bool find_function(const char *name, size_t size, function *found)
{
    static const struct {
        const char *name;
        function function;
    } functions[] = {{"program", FUNCTION_PROGRAM},         {"address", FUNCTION_ADDRESS},
                     {"syscall", FUNCTION_SYSCALL},         {"symbol", FUNCTION_SYMBOL},
                     {"hexadecimal", FUNCTION_HEXADECIMAL}, {"device", FUNCTION_DEVICE}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == size && memcmp(functions[i].name, name, size) == 0) {
            *found = functions[i].function;
            return true;
        }
    return false;
}

/* program(X), address(X) and the others above, TABLE[X]: sets what is done, and returns X, to be freed; NULL when it
 * is none of these. */
static char *read_function(reading *r, making *m, const char *from)
{
    size_t open = strcspn(from, "(["), size = strlen(from);
    if (from[open] == '\0' || from[size - 1] != (from[open] == '(' ? ')' : ']'))
        return NULL;
    if (from[open] == '[') {
        m->function = FUNCTION_TABLE;
        m->table = find_table(r->s, from, open);
        if (m->table == NULL)
            return NULL;
    } else if (find_function(from, open, &m->function)) {
        r->s->wants_programs |= m->function == FUNCTION_PROGRAM;
        r->s->wants_symbols |= m->function == FUNCTION_SYMBOL;
    } else {
        return NULL;
    }
    return strndup(from + open + 1, size - open - 2);
}

static bool read_source_of_field(reading *r, making *m, const char *from)
{
    if (*from == '\'') {
        m->function = FUNCTION_LITERAL;
        m->literal = value_of_text(&r->s->texts, (nl_string){from + 1, strlen(from + 1)});
        m->field = NO_FIELD;
        return true;
    }
    char *inside = NULL;
    if (strpbrk(from, "([") != NULL && (inside = read_function(r, m, from)) == NULL)
        return WRONG(r,
                     "\"%s\": program, address, syscall, symbol, hexadecimal or device (FIELD), or TABLE[FIELD] of a "
                     "[table TABLE] above, is wanted",
                     from);
    const char *name = inside != NULL ? inside : from;
    m->side = strncmp(name, "begin.", 6) == 0 ? SIDE_BEGIN : strncmp(name, "end.", 4) == 0 ? SIDE_END : SIDE_ANY;
    bool good = read_field_name(r, m->side != SIDE_ANY ? strchr(name, '.') + 1 : name, &m->field);
    free(inside);
    return good;
}

/* NAME, or NAME SOURCE. */
static bool read_field(reading *r, rule *into, const char *text)
{
    char *name = nl_word_next(&text, ""), *from = nl_word_next(&text, ""), *rest = nl_word_next(&text, "");
    making m = {.name = name};
    bool good = name != NULL && is_name(name) && rest == NULL;
    if (!good)
        WRONG(r, "field = NAME, or field = NAME SOURCE is wanted");
    good = good && read_source_of_field(r, &m, from != NULL ? from : name);
    if (good) {
        into->makings = more(into->makings, into->making_count, sizeof *into->makings);
        into->makings[into->making_count++] = m;
    } else {
        free(name);
    }
    free(from);
    free(rest);
    return good;
}

/* ---- clauses ---- */

static void add_patterns(clause *c, char *events)
{
    for (char *save = NULL, *one = strtok_r(events, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
        c->patterns = more(c->patterns, c->pattern_count, sizeof *c->patterns);
        c->patterns[c->pattern_count] = nl_memory_check(strdup(one));
        char *colon = strchr(c->patterns[c->pattern_count++], ':');
        if (colon != NULL)
            *colon = '.';
    }
}

static bool read_keys(reading *r, clause *c, char *fields)
{
    bool good = fields != NULL;
    if (!good)
        return WRONG(r, "key: names of fields are wanted, with commas between");
    for (char *save = NULL, *one = strtok_r(fields, ",", &save); good && one != NULL;
         one = strtok_r(NULL, ",", &save)) {
        if (c->key_count == KEYS_MAX)
            return WRONG(r, "key: at most %d fields", KEYS_MAX);
        good = read_field_name(r, one, &c->keys[c->key_count++]);
    }
    return good;
}

static bool read_carrier(reading *r, carrier *to, const char **text)
{
    char *kind = nl_word_next(text, ""), *field = nl_word_next(text, "");
    bool good = kind != NULL && read_field_name(r, field, &to->field);
    if (good)
        to->kind = value_of_text(&r->s->texts, (nl_string){kind, strlen(kind)});
    else
        WRONG(r, "from and to: KIND FIELD is wanted, as in: from thread TID");
    free(kind);
    free(field);
    return good;
}

/* The number of a state. */
static bool read_label(reading *r, rule *into, const char *label, unsigned *number)
{
    if (label == NULL || !is_name(label))
        return WRONG(r, "STATE: EVENT key FIELD is wanted");
    for (*number = 0; *number < into->label_count; (*number)++)
        if (strcmp(into->labels[*number], label) == 0)
            return true;
    if (into->label_count == LABELS_MAX)
        return WRONG(r, "there are at most %d states", LABELS_MAX);
    into->labels[into->label_count] = nl_memory_check(strdup(label));
    into->label_count++;
    return true;
}

/* What may follow the events: key, from, to, id, as, unless, move, where. */
static bool read_clause_word(reading *r, clause *c, const char *word, const char **text)
{
    char *next = NULL;
    bool good;
    if (strcmp(word, "key") == 0)
        good = read_keys(r, c, next = nl_word_next(text, ""));
    else if (strcmp(word, "from") == 0)
        good = read_carrier(r, &c->from, text);
    else if (strcmp(word, "to") == 0)
        good = read_carrier(r, &c->to, text);
    else if (strcmp(word, "id") == 0)
        good = read_field_name(r, next = nl_word_next(text, ""), &c->id);
    else if (strcmp(word, "as") == 0)
        good = (c->as = nl_word_next(text, "")) != NULL && is_name(c->as) ? true : WRONG(r, "as NAME is wanted");
    else if (strcmp(word, "unless") == 0)
        good = read_label(r, c->rule, next = nl_word_next(text, ""), &c->unless);
    else if (strcmp(word, "move") == 0)
        good = c->move = true;
    else
        good = WRONG(r, "\"%s\": key, from, to, id, as, unless, move or where is wanted", word);
    free(next);
    return good;
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
    into->clauses = more(into->clauses, into->clause_count, sizeof *into->clauses);
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
    bool good = events != NULL;
    if (!good)
        WRONG(r, "the name of an event is wanted");
    else
        add_patterns(c, events);
    free(events);
    while (good && (word = nl_word_next(&text, "")) != NULL) {
        bool is_where = strcmp(word, "where") == 0;
        good = is_where ? read_filter(r, c, text) : read_clause_word(r, c, word, &text);
        free(word);
        if (is_where)
            break;
    }
    return good;
}

/* LABEL: CLAUSE, of states. */
static bool read_labelled(reading *r, rule *into, role role, const char *text)
{
    const char *colon = strchr(text, ':');
    char *label = colon != NULL ? strndup(text, (size_t)(colon - text)) : NULL;
    unsigned number = 0;
    bool good = read_label(r, into, label, &number);
    free(label);
    return good && read_clause(r, into, role, number, colon + 1);
}

/* ---- rules ---- */

typedef struct word_role {
    const char *word;
    role role;
} word_role;

static bool find_role(const word_role *roles, const char *word, role *found)
{
    for (; roles->word != NULL; roles++)
        if (strcmp(roles->word, word) == 0) {
            *found = roles->role;
            return true;
        }
    return false;
}

static bool read_choice(reading *r, const char *value, const char *no, const char *yes, bool *chosen)
{
    *chosen = strcmp(value, yes) == 0;
    return *chosen || strcmp(value, no) == 0 || WRONG(r, "\"%s\": %s or %s is wanted", value, no, yes);
}

/* What states make records of. */
static bool read_emit(reading *r, rule *into, const char *value)
{
    into->segments = strcmp(value, "changes") != 0;
    into->changes = strcmp(value, "segments") != 0;
    return !into->segments || !into->changes || strcmp(value, "both") == 0 ||
           WRONG(r, "\"%s\": segments, changes or both is wanted", value);
}

static bool read_option(reading *r, rule *into, const nl_setting *setting)
{
    const char *key = setting->key, *value = setting->value;
    bool sums = into->kind == RULE_SUM || into->kind == RULE_RATE || into->kind == RULE_HISTOGRAM;
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
    if (strcmp(key, "value") == 0 && sums)
        return read_field_name(r, value, &into->value_field);
    if (strcmp(key, "every") == 0 && sums)
        return read_duration(r, value, &into->every_ns);
    return WRONG(r, "\"%s\" is nothing that is said of such a rule", key);
}

static bool read_setting(reading *r, rule *into, const nl_setting *setting)
{
    static const word_role spans[] = {{"begin", ROLE_BEGIN}, {"end", ROLE_END}, {"cancel", ROLE_CANCEL}, {0}};
    static const word_role sums[] = {{"of", ROLE_OF}, {0}};
    static const word_role states[] = {{"state", ROLE_STATE},
                                       {"wait", ROLE_WAIT},
                                       {"mark", ROLE_MARK},
                                       {"unmark", ROLE_UNMARK},
                                       {"becomes", ROLE_BECOMES},
                                       {"segment", ROLE_SEGMENT},
                                       {0}};
    static const word_role nothing[] = {{0}};
    static const word_role follows[] = {{"begin", ROLE_BEGIN}, {"pass", ROLE_PASS}, {"step", ROLE_STEP},
                                        {"leave", ROLE_LEAVE}, {"end", ROLE_END},   {0}};
    static const word_role *const roles[] = {sums, spans, sums, sums, sums, nothing, follows};
    role role;
    if (into->kind == RULE_STATES && find_role(states, setting->key, &role))
        return read_labelled(r, into, role, setting->value);
    if (find_role(roles[into->kind], setting->key, &role))
        return read_clause(r, into, role, 0, setting->value);
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
        return (!from && !to) || WRONG(r, "from and to are for [follow]");
    if (c->role == ROLE_BEGIN)
        return (to && !from) || WRONG(r, "begin: to KIND FIELD is wanted, and no from");
    if (c->role == ROLE_PASS)
        return (from && to) || WRONG(r, "pass: from KIND FIELD and to KIND FIELD are wanted");
    return (from && !to) || WRONG(r, "end, step and leave: from KIND FIELD is wanted, and no to");
}

/* What every rule must have, and that keys are as many on all sides. */
static bool check_rule(reading *r, rule *rule)
{
    static const struct {
        role role;
        const char *name;
    } needed[] = {{ROLE_OF, "of"}, {ROLE_BEGIN, "begin"}, {ROLE_OF, "of"},      {ROLE_OF, "of"},
                  {ROLE_OF, "of"}, {ROLE_STATE, "state"}, {ROLE_BEGIN, "begin"}};
    if (count_of_role(rule, needed[rule->kind].role) == 0)
        return WRONG(r, "[%s]: %s = is missing", rule->name, needed[rule->kind].name);
    if (rule->kind == RULE_SPAN && count_of_role(rule, ROLE_END) == 0)
        return WRONG(r, "[%s]: end = is missing", rule->name);
    if (rule->kind == RULE_HISTOGRAM && rule->value_field == NO_FIELD)
        return WRONG(r, "[%s]: value = is missing", rule->name);
    for (size_t i = 0; i < rule->clause_count; i++) {
        const clause *c = &rule->clauses[i];
        r->line = c->line;
        if (c->key_count != rule->clauses[0].key_count)
            return WRONG(r, "a key of %u fields, and of %u in line %u", c->key_count, rule->clauses[0].key_count,
                         rule->clauses[0].line);
        if (rule->kind == RULE_STATES && c->key_count == 0)
            return WRONG(r, "key FIELD is wanted: whose state it is");
        if (!check_carriers(r, c))
            return false;
    }
    for (unsigned i = 0; i < rule->clauses[0].key_count; i++)
        rule->key_names[i] = rule->clauses[0].keys[i];
    if (rule->kind == RULE_RATE && rule->every_ns == 0)
        rule->every_ns = NL_NS_PER_SECOND;
    return true;
}

static bool read_rule(reading *r, const nl_section *section, rule_kind kind)
{
    rule *into = &r->s->rules[r->s->rule_count++];
    *into = (rule){.kind = kind,
                   .name = nl_memory_check(strdup(section->name)),
                   .value_field = NO_FIELD,
                   .next_ns = INT64_MIN,
                   .segments = true};
    if (!is_name(into->name))
        return WRONG(r, "[%s NAME]: a name is wanted, for the events that it makes", section->kind);
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
        return WRONG(r, "[table NAME] is wanted");
    for (size_t i = 0; i < section->setting_count; i++) {
        const char *k = section->settings[i].key, *v = section->settings[i].value;
        t->keys[i].values[0] = value_of_text(&r->s->texts, (nl_string){k, strlen(k)});
        t->values[i] = value_of_text(&r->s->texts, (nl_string){v, strlen(v)});
    }
    t->count = section->setting_count;
    return true;
}

/* learn = FIELD FIELD: that the thread of this number is called so. */
static bool read_programs(reading *r, const nl_section *section)
{
    for (size_t i = 0; i < section->setting_count; i++) {
        const nl_setting *setting = &section->settings[i];
        const char *at = setting->value;
        unsigned place = 0;
        r->line = setting->line;
        while (place < 4 && r->s->learn_tid[place] != NO_FIELD)
            place++;
        if (strcmp(setting->key, "learn") != 0 || place == 4)
            return WRONG(r, "at most four lines learn = TID.FIELD NAME.FIELD are wanted");
        char *tid = nl_word_next(&at, ""), *name = nl_word_next(&at, "");
        bool good =
            read_field_name(r, tid, &r->s->learn_tid[place]) && read_field_name(r, name, &r->s->learn_name[place]);
        free(tid);
        free(name);
        if (!good)
            return false;
    }
    return true;
}

static bool read_section(reading *r, const nl_section *section)
{
    static const char *const kinds[] = {"make", "span", "sum", "rate", "histogram", "states", "follow"};
    /* What these say is for others than us. */
    static const char *const others[] = {"rules", "event", "parameter", "report", "workload", "kernel"};
    r->line = section->line;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(section->kind, kinds[i]) == 0)
            return read_rule(r, section, (rule_kind)i);
    if (strcmp(section->kind, "table") == 0)
        return read_table(r, section);
    if (strcmp(section->kind, "programs") == 0)
        return read_programs(r, section);
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(section->kind, others[i]) == 0)
            return true;
    return WRONG(r, "[%s]: there is no such section", section->kind);
}

bool rules_read(nl_synthesis *s, const nl_sections *sections)
{
    reading r = {.s = s, .sections = sections};
    s->rules = nl_memory_check(calloc(sections->count + 1, sizeof *s->rules));
    s->tables = nl_memory_check(calloc(sections->count + 1, sizeof *s->tables));
    s->tid_field = name_number(s, "TID");
    for (unsigned i = 0; i < 4; i++)
        s->learn_tid[i] = NO_FIELD;
    for (size_t i = 0; i < sections->count; i++)
        if (!read_section(&r, &sections->list[i]))
            return false;
    return true;
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
