dist_man_MANS = %D%/man/nlsort.1 %D%/man/nlconv.1 %D%/man/nlwrite.1 %D%/man/nlrecover.1 %D%/man/nlsensor.1
if BUILD_NLARCHIVE
dist_man_MANS += %D%/man/nlarchive.1
endif
if BUILD_NLSTAT
dist_man_MANS += %D%/man/nlstat.1 %D%/man/nldiag.1 %D%/man/nlschema.1
endif
if BUILD_NLV
dist_man_MANS += %D%/man/nlv.1
endif
if BUILD_NETLOGD
dist_man_MANS += %D%/man/netlogd.8 %D%/man/netlogd.conf.5 %D%/man/netlogctl.8
endif
if BUILD_NLKERNEL
dist_man_MANS += %D%/man/nlkernel.1
endif
if BUILD_NLAGENT
dist_man_MANS += %D%/man/nlagentd.8 %D%/man/nlagent.1
endif
EXTRA_DIST += %D%/dpss.png %D%/binary-format.md %D%/requests.md %D%/routing.md %D%/nats.md %D%/kernel-events.md %D%/synthesis.md %D%/formats.md %D%/expressions.md %D%/archive.md %D%/sensors.md %D%/agents.md
