# Comparisons with peers: run by hand, bench/run [BUILD-FOLDER] and bench/log/run [BUILD-FOLDER]. Nothing here is built
# by make: bench/log/run compiles its programs itself, as the peers that they need are optional.
EXTRA_DIST += %D%/README.md %D%/run %D%/nlconv/run %D%/netlogd/latency %D%/netlogd/latency.c \
	%D%/log/run %D%/log/measure.h %D%/log/netlogger_side.h %D%/log/netlogger_event.c %D%/log/netlogger_write.c \
	%D%/log/marker.c %D%/log/rdtsc.c %D%/log/lttng_provider.h %D%/log/lttng_ust.c %D%/log/spdlog.cpp %D%/log/nanolog.cpp
