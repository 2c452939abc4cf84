if BUILD_NETLOGD
dist_man_MANS = %D%/man/netlogd.8 %D%/man/netlogd.conf.5 %D%/man/netlogctl.8
endif
EXTRA_DIST += %D%/binary-format.md %D%/requests.md %D%/routing.md %D%/nats.md %D%/kernel-events.md %D%/expressions.md
