if BUILD_NETLOGD
sbin_PROGRAMS += netlogd/netlogd
endif
netlogd_netlogd_SOURCES = \
	%D%/main.c %D%/settings.c %D%/settings.h %D%/network.c %D%/network.h %D%/listener.c %D%/listener.h \
	%D%/connection.c %D%/connection.h %D%/output.c %D%/output.h %D%/server.c %D%/server.h \
	%D%/recovery.c %D%/recovery.h %D%/activation.c %D%/activation.h \
	%D%/request.c %D%/request.h %D%/subscription.c %D%/subscription.h %D%/control.c %D%/control.h
netlogd_netlogd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
netlogd_netlogd_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(EVENT_LIBS)
