# Comparisons with peers: run by hand, bench/run, bench/sort/run, bench/log/run and bench/netlogd/run [BUILD-FOLDER]. Nothing here is built
# by make: they compile their programs themselves, as the peers that they need are optional.
EXTRA_DIST += %D%/README.md %D%/run %D%/sort/run %D%/nlconv/run %D%/netlogd/run %D%/netlogd/load.c %D%/netlogd/latency %D%/netlogd/latency_ends.c %D%/netlogd/nats %D%/netlogd/nats_plain.c \
	%D%/log/run %D%/log/measure.h %D%/log/netlogger_side.h %D%/log/netlogger_event.c %D%/log/netlogger_write.c \
	%D%/log/marker.c %D%/log/rdtsc.c %D%/log/lttng_provider.h %D%/log/lttng_ust.c %D%/log/spdlog.cpp %D%/log/nanolog.cpp \
	%D%/kernel/run %D%/kernel/getppid.c \
	%D%/bindings/run
