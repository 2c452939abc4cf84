/* The spans of README.md in C++: c++ -std=c++17 spans.cpp $(pkg-config --cflags --libs netlogger) */
#include <netlogger.hpp>

using namespace netlogger::literals;

static void handle_request(const netlogger::log &log)
{
    auto request = log.span("Request"_e, "ID"_f = 7);
    {
        auto query = log.span("Query"_e, "SQL"_f = "SELECT 1");
        log.event("Row"_e, "N"_f = 1);
        query.set_status(3);
    }
    auto copy = log.detached_span(request.context(), "Copy"_e);
    copy.end("BYTES"_f = 700);
    log.event("Reply"_e);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    netlogger::log log("spans", argv[1]);
    handle_request(log);
    log.event("Idle"_e);
}
