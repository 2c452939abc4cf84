/* Determines the C and C++ names of a schema's declarations. */
#include "config.h"

#include "schema.h"

#include "base/option.h"

#include <string.h>

/* Names that no function or parameter may have: keywords of C and C++, common macros, types and builtins. */
static const char reserved[] =
    " alignas aligned_alloc alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto"
    " bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return co_yield"
    " compl complex concept const const_cast consteval constexpr constinit continue decltype default"
    " delete do double dynamic_cast else enum errno explicit export extern false float for friend goto"
    " i386 if imaginary inline int linux log long mutable namespace new noexcept noreturn not not_eq"
    " nullptr operator or or_eq posix_memalign private protected public reflexpr register"
    " reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast"
    " stderr stdin stdout struct switch synchronized template this thread_local throw true try typedef"
    " typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile while xor"
    " xor_eq ";

typedef struct naming {
    const schema *schema;
    GPtrArray *mistakes;
    GHashTable *taken; /* maps a name with file scope to a description of its owner, char * */
} naming;

static bool is_reserved(const char *name)
{
    return nl_option_list_has(reserved, ' ', name, strlen(name)) || g_str_has_prefix(name, "nl_");
}

/* Returns whether a name may be a C type, such as size_t or int_least8_t. */
static bool is_type(const char *name)
{
    const char *last = strrchr(name, '_');
    return g_str_has_suffix(name, "_t") && (strchr(name, '_') == last || g_str_has_prefix(name, "int_") ||
                                            g_str_has_prefix(name, "uint_") || strcmp(name, "max_align_t") == 0);
}

/* Appends `name` in lower or upper case. Replaces each byte that a C name cannot contain with _. */
static void append_mangled(GString *out, const char *name, bool upper)
{
    for (; *name != '\0'; name++) {
        char c = upper ? g_ascii_toupper(*name) : g_ascii_tolower(*name);
        g_string_append_c(out, g_ascii_isalnum(c) ? c : '_');
    }
}

/*
 * Joins up to four names with _, in lower or upper case. NULL ends the list. The caller frees the result with g_free.
 */
static char *names_join(bool upper, const char *first, const char *second, const char *third, const char *fourth)
{
    const char *const names[] = {first, second, third, fourth};
    GString *out = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(names) && names[i] != NULL; i++) {
        if (i > 0)
            g_string_append_c(out, '_');
        append_mangled(out, names[i], upper);
    }
    return g_string_free(out, FALSE);
}

/* Adds a C name with file scope to the names in use. Adds a mistake if another owner uses the name, or if C reserves
 * it. `what` describes the owner of the name; the function takes ownership of `what`. */
static void names_take(naming *n, const char *name, unsigned line, char *what)
{
    const char *other = g_hash_table_lookup(n->taken, name);
    if (other != NULL)
        schema_mistake_add(n->mistakes, line, "%s and %s have the same C name, %s", other, what, name);
    else if (is_reserved(name) || is_type(name))
        schema_mistake_add(n->mistakes, line, "%s has the reserved C name %s; change prefix=", what, name);
    if (other == NULL)
        g_hash_table_insert(n->taken, g_strdup(name), what);
    else
        g_free(what);
}

static char *of_field(const schema_event *e, const schema_field *f, const char *kind)
{
    return g_strdup_printf("the %s of %s of %s", kind, f->name, e->name);
}

static void name_enum(naming *n, const schema_event *e, schema_field *f)
{
    f->c_type = names_join(false, n->schema->prefix, e->name, f->name, NULL);
    names_take(n, f->c_type, f->line, of_field(e, f, "enum"));
    char *converter = g_strconcat(f->c_type, "_name", NULL);
    names_take(n, converter, f->line, of_field(e, f, "names"));
    g_free(converter);
    for (guint i = 0; i < f->values->len; i++) {
        const char *value = g_ptr_array_index(f->values, i);
        char *constant = names_join(true, n->schema->prefix, e->name, f->name, value), *plain = schema_plain(value);
        names_take(n, constant, f->line, g_strdup_printf("the value %s of %s of %s", plain, f->name, e->name));
        g_ptr_array_add(f->constants, constant);
        g_free(plain);
    }
}

static void name_event(naming *n, schema_event *e)
{
    e->function = names_join(false, n->schema->prefix, e->name, NULL, NULL);
    names_take(n, e->function, e->line, g_strdup_printf("the event %s", e->name));
    if (e->has_optional) {
        char *required = g_strconcat(e->function, "_required", NULL);
        names_take(n, required, e->line,
                   g_strdup_printf("the short form of the event %s, without its optional fields", e->name));
        g_free(required);
    }
    for (guint i = 0; i < e->fields->len; i++) {
        schema_field *f = g_ptr_array_index(e->fields, i);
        if (f->type == SCHEMA_ENUM)
            name_enum(n, e, f);
    }
}

/* Returns the name of a parameter for a field. The name must not hide a name that the macro in the function's body
 * uses. The caller frees the name with g_free. */
static char *parameter_name(const naming *n, const char *name)
{
    GString *out = g_string_new(NULL);
    append_mangled(out, name, false);
    if (out->str[0] == '_') /* names with a leading _ are reserved for the compiler, as nl_ is for the library */
        g_string_prepend_c(out, 'f');
    else if (g_str_has_prefix(out->str, "nl_"))
        g_string_prepend(out, "f_");
    if (is_reserved(out->str) || is_type(out->str) || g_hash_table_contains(n->taken, out->str))
        g_string_append_c(out, '_');
    return g_string_free(out, FALSE);
}

static void name_parameters(naming *n, schema_event *e)
{
    GHashTable *taken = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < e->fields->len; i++) {
        schema_field *f = g_ptr_array_index(e->fields, i);
        f->parameter = parameter_name(n, f->name);
        const schema_field *other = g_hash_table_lookup(taken, f->parameter);
        if (other != NULL)
            schema_mistake_add(n->mistakes, f->line, "%s and %s have the same C name, %s", other->name, f->name,
                               f->parameter);
        g_hash_table_insert(taken, f->parameter, f);
    }
    g_hash_table_unref(taken);
}

static const char *plain_c_type(schema_type type)
{
    static const char *const types[] = {
        [SCHEMA_BOOL] = "bool",       [SCHEMA_INT8] = "int8_t",     [SCHEMA_INT16] = "int16_t",
        [SCHEMA_INT32] = "int32_t",   [SCHEMA_INT64] = "int64_t",   [SCHEMA_UINT8] = "uint8_t",
        [SCHEMA_UINT16] = "uint16_t", [SCHEMA_UINT32] = "uint32_t", [SCHEMA_UINT64] = "uint64_t",
        [SCHEMA_FLOAT] = "float",     [SCHEMA_DOUBLE] = "double",   [SCHEMA_STRING] = "const char *",
        [SCHEMA_BYTES] = "nl_string",
    };
    return types[type];
}

void schema_name_all(schema *s, GPtrArray *mistakes)
{
    naming n = {s, mistakes, g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    for (guint i = 0; i < s->events->len; i++)
        name_event(&n, g_ptr_array_index(s->events, i));
    for (guint i = 0; i < s->events->len; i++) {
        schema_event *e = g_ptr_array_index(s->events, i);
        name_parameters(&n, e);
        for (guint f = 0; f < e->fields->len; f++) {
            schema_field *field = g_ptr_array_index(e->fields, f);
            if (field->type != SCHEMA_ENUM)
                field->c_type = g_strdup(plain_c_type(field->type));
        }
    }
    g_hash_table_unref(n.taken);
}
