if BUILD_NETLOGD
sbin_PROGRAMS += netlogd/netlogd
bin_PROGRAMS += netlogd/netlogctl
endif
netlogd_netlogd_SOURCES = \
	%D%/main.c %D%/settings.c %D%/settings.h %D%/network.c %D%/network.h %D%/listener.c %D%/listener.h \
	%D%/connection.c %D%/connection.h %D%/output.c %D%/output.h %D%/server.c %D%/server.h \
	%D%/recovery.c %D%/recovery.h %D%/activation.c %D%/activation.h \
	%D%/request.c %D%/request.h %D%/subscription.c %D%/subscription.h %D%/control.c %D%/control.h \
	%D%/metrics.c %D%/metrics.h
netlogd_netlogd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
netlogd_netlogd_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(EVENT_LIBS)

netlogd_netlogctl_SOURCES = %D%/netlogctl.c
netlogd_netlogctl_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la
