/* The ten events of README.md in C++: c++ -std=c++17 ten.cpp $(pkg-config --cflags --libs netlogger) */
#include <netlogger.hpp>

#include <cstdint>
#include <iostream>
#include <limits>

using namespace netlogger::literals;

static void write_ten(const netlogger::log &log)
{
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    std::string huge;
    while (huge.size() < 100000)
        huge += "0123456789";
    log.event("Ten.Integers"_e, "ZERO"_f = 0, "NEGATIVE"_f = -49332, "LEAST"_f = INT64_MIN, "MOST"_f = INT64_MAX);
    log.event("Ten.Reals"_e, "TENTH"_f = 0.1, "LARGE"_f = -1.5e300, "NAN"_f = nan, "INFINITE"_f = infinity,
              "NEGATIVE"_f = -infinity);
    log.debug("Ten.Truth"_e, "YES"_f = true, "NO"_f = false);
    log.warning("Ten.Quotes"_e, "TEXT"_f = "say \"hello\", \\ and 'goodbye' A=1");
    log.event<NL_ERROR>("Ten.Lines"_e, "TEXT"_f = "one\ntwo\tthree\r\n");
    log.event<NL_IMPORTANT>("Ten.Utf8"_e, "TEXT"_f = u8"Grüße, 世界 🌍");
    log.event<NL_SYSTEM>("Ten.Empty"_e, "TEXT"_f = std::string());
    log.event(std::string("Ten.Huge"), "TEXT"_f = huge, "AFTER"_f = 1); // a literal name would truncate this text
    log.event<NL_ALERT>("Ten.Nothing"_e);
    log.event("Ten.Many"_e, "F01"_f = 1, "F02"_f = 2, "F03"_f = 3, "F04"_f = 4, "F05"_f = 5, "F06"_f = 6, "F07"_f = 7,
              "F08"_f = 8, "F09"_f = 9, "F10"_f = 10, "F11"_f = 11, "F12"_f = 12, "F13"_f = 13, "F14"_f = 14,
              "F15"_f = 15, "F16"_f = 16);
}

int main(int argc, char **argv)
{
    try {
        netlogger::log log("ten", argc > 1 ? argv[1] : nullptr);
        write_ten(log);
        log.close();
    } catch (const netlogger::error &error) {
        std::cerr << "ten: " << error.what() << '\n';
        return 1;
    }
}
