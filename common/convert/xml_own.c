#include "config.h"

#include "convert/xml.h"

#include "record/field_name.h"

#include <string.h>

/* Bytes that stand for themselves, in attributes and in text. All others, and what is beyond ASCII, libxml2 reads. */
static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '<' && c != '>' && c != '&';
}

static const char *take(const char *at, const char *end, const char *word, size_t size)
{
    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}
#define TAKE(at, end, literal) take(at, end, literal, sizeof(literal) - 1)

/* Takes plain bytes and the one that stops them. NULL when something else does. */
static const char *take_until(const char *at, const char *end, char stop, nl_string *text)
{
    const char *start = at;
    while (at < end && *at != stop && is_plain(*at))
        at++;
    if (at == end || *at != stop)
        return NULL;
    *text = (nl_string){start, (size_t)(at - start)};
    return at + 1;
}

/* The standard fields: attributes in the order in which they are written. */
static const char *take_members(const char *at, const char *end, builder *b)
{
    static const struct {
        const char *before;
        member member;
    } members[] = {
        {" event=\"", MEMBER_EVENT}, {" level=\"", MEMBER_LEVEL}, {" host=\"", MEMBER_HOST}, {" prog=\"", MEMBER_PROG}};
    nl_string text;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const char *value = take(at, end, members[i].before, strlen(members[i].before));
        if (value == NULL)
            continue;
        if ((at = take_until(value, end, '"', &text)) == NULL)
            return NULL;
        builder_set(b, members[i].member, text);
    }
    return TAKE(at, end, ">");
}

/* <f n="NAME" t="TYPE">TEXT</f>, whose beginning up to the name was taken. */
static const char *take_field(const char *at, const char *end, builder *b)
{
    nl_type type = NL_TYPE_STRING;
    nl_string name, type_name, text;
    if ((at = take_until(at, end, '"', &name)) == NULL || !nl_is_name(name))
        return NULL;
    const char *typed = TAKE(at, end, " t=\"");
    if (typed != NULL && ((at = take_until(typed, end, '"', &type_name)) == NULL || !xml_type(type_name, &type)))
        return NULL;
    if ((at = TAKE(at, end, ">")) == NULL || (at = take_until(at, end, '<', &text)) == NULL ||
        (at = TAKE(at, end, "/f>")) == NULL)
        return NULL;
    return xml_set_value(builder_add_good_name(b, name), type, text) ? at : NULL;
}

const char *xml_own_record(const char *at, const char *end, builder *b)
{
    nl_string text;
    builder_begin(b, 0);
    if ((at = TAKE(at, end, "<record time=\"")) == NULL || (at = take_until(at, end, '"', &text)) == NULL ||
        !builder_set(b, MEMBER_TIME, text) || (at = take_members(at, end, b)) == NULL)
        return NULL;
    for (const char *field; (field = TAKE(at, end, "<f n=\"")) != NULL;)
        if ((at = take_field(field, end, b)) == NULL)
            return NULL;
    return TAKE(at, end, "</record>\n");
}
