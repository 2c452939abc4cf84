/*
 * Parses the line of a request to netlogd. netlogd reads a valid request, and an error has a message that netlogd can
 * send.
 */
#include "fuzz.h"

#include "request_line.c" /* NOLINT: the fuzz target includes the module */

static const request_verb verbs[] = {
    {"subscribe", " WHERE FORMAT SINCE ", false, NULL},
    {"status", "", true, NULL},
    {"tell", " COMMAND PROG ", true, NULL},
};

/* Calls the functions that the verb `subscribe` calls with the values. */
static void use_values(const nl_record *asked)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (nl_record_find(asked, "WHERE", &field)) {
        nl_string text = nl_field_text(&field, scratch);
        char *where = calloc(1, text.size + 1);
        fuzz_expect(where != NULL, "there is memory");
        memcpy(where, text.data, text.size);
        nl_filter_free(nl_filter_parse(where));
        free(where);
    }
}

static void check_known(const request_verb *verb, const nl_record *asked)
{
    for (size_t i = 0; i < asked->field_count; i++) {
        char padded[40];
        nl_string name = asked->fields[i].name;
        fuzz_expect(name.size < sizeof padded - 3, "a known name is short");
        snprintf(padded, sizeof padded, " %.*s ", (int)name.size, name.data);
        fuzz_expect(strstr(verb->fields, padded) != NULL, "only fields that the verb knows are asked with");
    }
    fuzz_expect(asked->host.data == NULL && asked->event.data == NULL, "nor with those of every record");
}

static const request_verb *read_request(const char *line, size_t size, bool control)
{
    nl_error_clear();
    nl_buffer storage = {0};
    nl_record *asked = nl_record_new();
    const request_verb *verb = request_line_read(line, size, verbs, 3, control, &storage, asked);
    fuzz_expect((verb == NULL) == (nl_error_get_code() != NL_ERROR_NONE), "a request has a verb or an error");
    if (verb != NULL) {
        fuzz_expect(control || !verb->control, "some verbs are for the control socket");
        check_known(verb, asked);
        use_values(asked);
    }
    nl_record_free(asked);
    nl_buffer_free(&storage);
    return verb;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = fuzz_copy(data, size);
    const request_verb *verb = read_request(line, size, true), *without = read_request(line, size, false);
    fuzz_expect(without == (verb == NULL || verb->control ? NULL : verb), "the socket only matters to those verbs");
    free(line);
    return 0;
}
