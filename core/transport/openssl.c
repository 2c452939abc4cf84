#include "config.h"

#include "transport/openssl.h"

NL_LIBRARY_DEFINE_SHARED(nl_openssl, OPENSSL_LIBRARY, NL_OPENSSL_FUNCTIONS);

bool nl_openssl_load(void)
{
    return nl_library_load(&nl_openssl_library);
}
