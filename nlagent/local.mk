bin_PROGRAMS += nlagent/nlsensor
nlagent_nlsensor_SOURCES = \
	%D%/nlsensor.c %D%/sensors/sensor.h %D%/sensors/proc.c %D%/sensors/cpu.c %D%/sensors/memory.c \
	%D%/sensors/tcp.c %D%/sensors/disk.c
nlagent_nlsensor_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nlagent_nlsensor_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la -lm
