/* Measures the C++ binding's event call with a binary file. The call corresponds to NL_EVENT, but is not a macro. */
#include <netlogger.hpp>

#include "measure.h"

using namespace netlogger::literals;

static netlogger::log side_log;

void side_open(const char *path)
{
    side_log = netlogger::log("bench", ("file://" + std::string(path) + "?format=nlb&policy=block").c_str());
}

inline void side_write(uint64_t i)
{
    side_log.event("WriteData"_e, "OFFSET"_f = long(i), "SIZE"_f = int(i), "NAME"_f = "abcdefghijklmn");
}

uint64_t side_close(void)
{
    side_log.close();
    return 0;
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
