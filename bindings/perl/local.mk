# The library in Perl: built in a copy in the build folder, as Makefile.PL writes where it is. CPAN's way installs it.
perl_binding = \
	%D%/Makefile.PL %D%/NetLogger.xs %D%/lib/NetLogger.pm %D%/lib/NetLogger/Span.pm \
	%D%/lib/Log/Any/Adapter/NetLogger.pm %D%/t/netlogger.t %D%/MANIFEST
EXTRA_DIST += $(perl_binding) %D%/missing.pl

%D%/built: $(perl_binding) libnetlogger/libnetlogger.la
	$(AM_V_GEN)rm -rf %D%/work && $(MKDIR_P) %D%/work && \
	(cd $(srcdir)/%D% && tar -cf - -T MANIFEST) | (cd %D%/work && tar -xf - && chmod -R u+w .) && \
	(cd %D%/work && unset MAKEFLAGS MAKELEVEL MFLAGS && \
		NETLOGGER_CFLAGS='-I$(abs_top_srcdir)/libnetlogger/include $(CPPFLAGS)' \
		NETLOGGER_LIBS='-L$(abs_top_builddir)/libnetlogger/.libs -lnetlogger' $(PERL) Makefile.PL && $(MAKE)) \
		> %D%/build.log 2>&1 || { cat %D%/build.log >&2; exit 1; }
	$(AM_V_at)touch $@
if BUILD_PERL
all-local: %D%/built
endif
CLEANFILES += %D%/built %D%/build.log
clean-local: clean-perl
clean-perl:
	-rm -rf %D%/work
.PHONY: clean-perl
