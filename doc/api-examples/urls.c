/* Names of sources and destinations, taken apart. */
#include <netlogger.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    nl_url *url = nl_url_parse("x-netlog://dolly.lbl.gov?format=nlb");
    if (url == NULL) {
        fprintf(stderr, "urls: %s\n", nl_error_message());
        return 1;
    }
    const char *format = nl_url_option_value(url, "format");
    printf("%s, port %u, %s\n", url->host, url->port, format);
    int different = url->scheme != NL_SCHEME_NETLOG || url->port != NL_DEFAULT_PORT || strcmp(format, "nlb") != 0;
    nl_url_free(url);
    return different;
}
