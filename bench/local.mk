# Comparisons with peers: run by hand, bench/run or bench/WHAT/run [BUILD-FOLDER]. Nothing here is built by make: they compile
# their programs themselves, as the peers that they need are optional.
EXTRA_DIST += \
	%D%/README.md \
	%D%/agent/cost \
	%D%/agent/thousand \
	%D%/archive/run \
	%D%/attack/run \
	%D%/bindings/Events.java \
	%D%/bindings/events.f90 \
	%D%/bindings/run \
	%D%/compare \
	%D%/instructions/decode.c \
	%D%/kernel/run \
	%D%/log/lttng_provider.h \
	%D%/log/lttng_ust.c \
	%D%/log/marker.c \
	%D%/log/measure.h \
	%D%/log/nanolog.cpp \
	%D%/log/netlogger_event.c \
	%D%/log/netlogger_event.cpp \
	%D%/log/netlogger_side.h \
	%D%/log/netlogger_write.c \
	%D%/log/rdtsc.c \
	%D%/log/run \
	%D%/log/spdlog.cpp \
	%D%/netlogd/latency \
	%D%/netlogd/latency_ends.c \
	%D%/netlogd/load.c \
	%D%/netlogd/nats \
	%D%/netlogd/nats_plain.c \
	%D%/netlogd/run \
	%D%/netlogd/seek \
	%D%/nlconv/run \
	%D%/nlv/drive.c \
	%D%/nlv/make_log.c \
	%D%/nlv/run \
	%D%/paired.py \
	%D%/requests/make_spans.c \
	%D%/requests/run \
	%D%/run \
	%D%/sort/make_log.c \
	%D%/sort/run
