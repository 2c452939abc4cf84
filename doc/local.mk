dist_man_MANS = %D%/man/netlogger.7 %D%/man/nlsort.1 %D%/man/nlsensor.1
if BUILD_NLTOOLS
dist_man_MANS += %D%/man/nlconv.1 %D%/man/nlwrite.1 %D%/man/nlrecover.1 %D%/man/nlarchive.1 %D%/man/nlstat.1 %D%/man/nldiag.1 %D%/man/nlschema.1
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
EXTRA_DIST += %D%/man_options.py %D%/dpss.png %D%/tuning-dpss.png %D%/tuning-curl.png %D%/slow-service.png %D%/binary-format.md %D%/requests.md %D%/routing.md %D%/nats.md %D%/kernel-events.md %D%/synthesis.md %D%/formats.md %D%/expressions.md %D%/archive.md %D%/sensors.md %D%/agents.md

# "make site" makes a static website; open doc/site/html/index.html in the build directory. The programs make its pictures.
site: all
	$(MKDIR_P) doc/site
	PYTHONDONTWRITEBYTECODE=1 $(PYTHON) $(srcdir)/doc/site/make_site.py --source $(srcdir) --build . --output doc/site/html --version $(PACKAGE_VERSION)
.PHONY: site clean-site
clean-local: clean-site
clean-site:
	rm -rf doc/site/html

# Each file has its own line, so that two additions do not conflict.
EXTRA_DIST += \
	%D%/api-examples/buffers.c \
	%D%/api-examples/classic.c \
	%D%/api-examples/classic_old.c \
	%D%/api-examples/control.c \
	%D%/api-examples/kinds.c \
	%D%/api-examples/logging.c \
	%D%/api-examples/markers.c \
	%D%/api-examples/reading.c \
	%D%/api-examples/records.c \
	%D%/api-examples/spans.c \
	%D%/api-examples/recovering.c \
	%D%/clocks.md \
	%D%/concepts.md \
	%D%/events.md \
	%D%/howto/a-thousand-hosts.md \
	%D%/howto/from-opentelemetry.md \
	%D%/howto/from-syslog.md \
	%D%/howto/instrument-a-server.md \
	%D%/howto/kernel-and-program.md \
	%D%/howto/sealed-archive.md \
	%D%/howto/slow-service.md \
	%D%/howto/slow-transfer.md \
	%D%/howto/watch-live.md \
	%D%/howto/wide-area-throughput.md \
	%D%/index.md \
	%D%/install.md \
	%D%/security.md \
	%D%/site/Doxyfile \
	%D%/site/api.py \
	%D%/site/contents \
	%D%/site/header_filter.py \
	%D%/site/layout.py \
	%D%/site/links.py \
	%D%/site/make_site.py \
	%D%/site/manual.py \
	%D%/site/pages.py \
	%D%/site/search.js \
	%D%/site/site.css \
	%D%/site/text.py \
	%D%/text-formats.md \
	%D%/tutorial.md \
	%D%/wire-protocol.md

# Instructions for adding to this directory.
EXTRA_DIST += %D%/site/README.md
