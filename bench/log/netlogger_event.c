/* Measures NL_EVENT with a binary file. With -DSIDE_OFF, the level of the events is disabled. */
#include <netlogger.h>
#ifndef NL_EVENT
#define MEASURE_MISSING "the library has no NL_EVENT"
#endif
#include "measure.h"

#ifdef NL_EVENT
#define SIDE_OPTIONS "format=nlb&policy=block"
#include "netlogger_side.h"

inline void side_write(uint64_t i)
{
    NL_EVENT(side_log, NL_USAGE, "WriteData", "OFFSET", (long)i, "SIZE", (int)i, "NAME", "abcdefghijklmn");
}
#endif

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
