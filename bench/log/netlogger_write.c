/* Measures nl_write with a text file. With -DSIDE_OFF, the level of the events is disabled. */
#include <netlogger.h>
#include "measure.h"

#define SIDE_OPTIONS "policy=block"
#include "netlogger_side.h"

inline void side_write(uint64_t i)
{
    nl_write(side_log, NL_USAGE, "WriteData", "OFFSET=%ld SIZE=%d NAME=%s", (long)i, (int)i, "abcdefghijklmn");
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
