#include "config.h"

#include "service/http_url.h"

#include <stdio.h>
#include <string.h>

bool url_from_http(const char *text, const char *default_port, char *url, size_t capacity)
{
    bool secure = strncmp(text, "https://", 8) == 0;
    if (!secure && strncmp(text, "http://", 7) != 0)
        return false;
    const char *rest = strstr(text, "://") + 3;
    size_t size = strcspn(rest, "/?");
    bool has_port = size > 0 && memchr(rest, ':', size) != NULL && rest[size - 1] != ']';
    if (size == 0 || (!has_port && default_port == NULL))
        return false;
    return snprintf(url, capacity, "x-netlog%s://%.*s%s%s%s", secure ? "s" : "", (int)size, rest, has_port ? "" : ":",
                    has_port ? "" : default_port, rest + size + strspn(rest + size, "/")) < (int)capacity;
}
