/* Measures NanoLog in its C++17 mode. The user names the directory that contains NanoLog. */
#include "measure.h"

#include <array> /* the next header uses std::array without including it */
#include "NanoLogCpp17.h"

using namespace NanoLog::LogLevels;

void side_open(const char *path)
{
    NanoLog::setLogFile(path);
    NanoLog::preallocate();
}

inline void side_write(uint64_t i)
{
    NANO_LOG(NOTICE, "WriteData OFFSET=%ld SIZE=%d NAME=%s", (long)i, (int)i, "abcdefghijklmn");
}

uint64_t side_close(void)
{
    NanoLog::sync();
    return 0;
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
