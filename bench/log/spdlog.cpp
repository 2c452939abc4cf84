/*
 * Measures spdlog with a text file, asynchronously. With -DSIDE_SYNC, the caller formats and writes. With -DSIDE_OFF,
 * the level is disabled.
 */
#include "measure.h"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

static std::shared_ptr<spdlog::logger> logger;

void side_open(const char *path)
{
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, true);
#ifdef SIDE_SYNC
    logger = std::make_shared<spdlog::logger>("bench", sink);
#else
    spdlog::init_thread_pool(8192, 1);
    logger = std::make_shared<spdlog::async_logger>("bench", sink, spdlog::thread_pool(),
                                                    spdlog::async_overflow_policy::block);
#endif
    logger->set_pattern("[%Y-%m-%d %H:%M:%S.%f] [%n] [%l] %v");
#ifdef SIDE_OFF
    logger->set_level(spdlog::level::err);
#endif
}

inline void side_write(uint64_t i)
{
    logger->info("WriteData OFFSET={} SIZE={} NAME={}", (long)i, (int)i, "abcdefghijklmn");
}

/* Stopping the thread pool writes all queued messages; the sink closes the file. */
uint64_t side_close(void)
{
    logger.reset();
    spdlog::shutdown();
    return 0;
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
