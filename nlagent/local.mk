# nlsensor, and what nlagentd starts, of the same sources but for where records go.
nlagent_sensor_sources = \
	%D%/nlsensor.c %D%/output.h %D%/spec.c %D%/spec.h %D%/sensors/sensor.h %D%/sensors/kinds.c %D%/sensors/proc.c \
	%D%/sensors/http.c %D%/sensors/http.h \
	%D%/sensors/clock.c %D%/sensors/connections.c %D%/sensors/cpu.c %D%/sensors/disk.c %D%/sensors/filesystem.c \
	%D%/sensors/interrupts.c %D%/sensors/load.c %D%/sensors/memory.c %D%/sensors/network.c %D%/sensors/ping.c \
	%D%/sensors/pressure.c %D%/sensors/processes.c %D%/sensors/prometheus.c %D%/sensors/server.c %D%/sensors/swap.c \
	%D%/sensors/tcp.c %D%/sensors/vm.c

bin_PROGRAMS += nlagent/nlsensor
nlagent_nlsensor_SOURCES = $(nlagent_sensor_sources) %D%/output_log.c
nlagent_nlsensor_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nlagent_nlsensor_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la -lm

# Of the library's inside it takes only what it needs, and so no shared library but libc's.
pkglibexec_PROGRAMS = nlagent/sensor
nlagent_sensor_SOURCES = $(nlagent_sensor_sources) %D%/output_text.c libnetlogger/program/program.c
nlagent_sensor_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nlagent_sensor_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed -Wl,--gc-sections
nlagent_sensor_LDADD = libnetlogger/libcore.la -lm
