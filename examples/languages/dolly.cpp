/* The example dolly of README.md in C++: c++ -std=c++17 dolly.cpp $(pkg-config --cflags --libs netlogger) */
#include <netlogger.hpp>

#include <string>

using namespace netlogger::literals;

int main(int argc, char **argv)
{
    const std::string host = argc > 1 ? argv[1] : "dolly.lbl.gov", port = argc > 2 ? argv[2] : "14830";
    int size = 49332;
    netlogger::log log("testprog", "x-netlog://" + host + ":" + port);
    log.event("WriteData"_e, "SEND.SZ"_f = size);
}
