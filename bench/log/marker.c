/* Measures NL_MARKER when no probe is attached. */
#include <netlogger.h>
#ifndef NL_MARKER
#define MEASURE_MISSING "the library has no NL_MARKER"
#endif
#include "measure.h"

#ifdef NL_MARKER
void side_open(const char *path)
{
    (void)path;
}

inline void side_write(uint64_t i)
{
    NL_MARKER(disk_read, "BLOCK.ID", (long)i);
}

uint64_t side_close(void)
{
    return 0;
}
#endif

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
