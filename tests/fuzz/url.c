/* Parses a URL. The parts of a valid URL agree, and its options are found. */
#include "fuzz.h"
#include "transport/url.h"

static void check_options(const nl_url *url)
{
    for (size_t i = 0; i < url->option_count; i++) {
        fuzz_expect(*url->options[i].name != '\0', "an option has a name");
        const char *value = nl_url_option_value(url, url->options[i].name);
        fuzz_expect(value != NULL, "an option that is there is found");
    }
    nl_url_option_value(url, "buffer");
    fuzz_expect(nl_url_option_value(url, "") == NULL, "no option is nameless");
}

static void check_place(const nl_url *url)
{
    bool wants_host = url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS ||
                      url->scheme == NL_SCHEME_UDP || url->scheme == NL_SCHEME_NATS || url->scheme >= NL_SCHEME_OTLP;
    fuzz_expect((url->host != NULL) == wants_host, "a collector or NATS, and nothing else, has a host");
    if (url->host != NULL)
        fuzz_expect(*url->host != '\0' && strchr(url->host, '/') == NULL, "a host has a name");
    bool wants_path = url->scheme == NL_SCHEME_FILE || url->scheme == NL_SCHEME_UNIX ||
                      url->scheme == NL_SCHEME_MEMORY || url->scheme == NL_SCHEME_INHERITED ||
                      url->scheme == NL_SCHEME_NATS;
    if (wants_path)
        fuzz_expect(url->path != NULL && *url->path != '\0', "what has a path says which");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    text = realloc(text, size + 1);
    fuzz_expect(text != NULL, "there is memory");
    text[size] = '\0';
    nl_error_clear();
    nl_url *url = nl_url_parse(text);
    if (url != NULL) {
        fuzz_expect(strcmp(url->text, text) == 0, "a URL keeps its text");
        free(text);
        check_place(url);
        check_options(url);
    } else {
        fuzz_expect(*nl_error_message() != '\0', "there are words for what is no URL");
        free(text);
    }
    nl_url_free(url);
    return 0;
}
