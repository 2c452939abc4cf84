dist_man_MANS = %D%/man/nlsort.1 %D%/man/nlconv.1
if BUILD_NETLOGD
dist_man_MANS += %D%/man/netlogd.8 %D%/man/netlogd.conf.5 %D%/man/netlogctl.8
endif
if BUILD_NLV
dist_man_MANS += %D%/man/nlv.1
endif
if BUILD_NLKERNEL
dist_man_MANS += %D%/man/nlkernel.1
endif
EXTRA_DIST += %D%/binary-format.md %D%/requests.md %D%/routing.md %D%/nats.md %D%/kernel-events.md %D%/formats.md %D%/netlogger.xsd %D%/expressions.md
