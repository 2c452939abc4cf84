# The Perl binding. It is built in a copy in the build directory, because Makefile.PL writes into its own directory. It
# is installed like a module from CPAN.
perl_binding = \
	%D%/Makefile.PL %D%/NetLogger.xs %D%/lib/NetLogger.pm %D%/lib/NetLogger/Span.pm \
	%D%/lib/Log/Any/Adapter/NetLogger.pm %D%/t/netlogger.t %D%/MANIFEST
EXTRA_DIST += $(perl_binding) %D%/missing.pl %D%/folder.pl

%D%/built: $(perl_binding) libnetlogger/libnetlogger.la
	$(AM_V_GEN)rm -rf %D%/work && $(MKDIR_P) %D%/work && \
	(cd $(srcdir)/%D% && tar -cf - -T MANIFEST) | (cd %D%/work && tar -xf - && chmod -R u+w .) && \
	(cd %D%/work && unset MAKEFLAGS MAKELEVEL MFLAGS && \
		NETLOGGER_CFLAGS='-I$(abs_top_srcdir)/libnetlogger/include $(CPPFLAGS) $(NL_HARDENING)' \
		NETLOGGER_LIBS='-L$(abs_top_builddir)/libnetlogger/.libs -lnetlogger' $(PERL) Makefile.PL && $(MAKE)) \
		> %D%/build.log 2>&1 || { cat %D%/build.log >&2; exit 1; }
	$(AM_V_at)rm -rf %D%/installed && cp -Rp %D%/work %D%/installed && (cd %D%/installed && \
		rm -f blib/arch/auto/NetLogger/NetLogger.so && unset MAKEFLAGS MAKELEVEL MFLAGS && \
		$(MAKE) -s LD_RUN_PATH= OTHERLDFLAGS='$(addprefix -Wl$(comma)-rpath$(comma),$(installed_rpath)) $(NL_HARDENING_LDFLAGS)') \
		> %D%/build.log 2>&1 || { cat %D%/build.log >&2; exit 1; }
	$(AM_V_at)touch $@
if BUILD_PERL
all-local: %D%/built
install-exec-local: install-perl
uninstall-local: uninstall-perl
endif
perl_files = NetLogger.pm NetLogger/Span.pm Log/Any/Adapter/NetLogger.pm
perl_pages = NetLogger NetLogger::Span Log::Any::Adapter::NetLogger

install-perl: %D%/built
	for file in $(perl_files); do \
		$(MKDIR_P) "$(DESTDIR)$(perlmoduledir)/$$(dirname $$file)" && \
		$(INSTALL_DATA) %D%/installed/blib/lib/$$file "$(DESTDIR)$(perlmoduledir)/$$file" || exit 1; done
	$(MKDIR_P) '$(DESTDIR)$(perlmoduledir)/auto/NetLogger' '$(DESTDIR)$(mandir)/man3'
	$(INSTALL_DATA) %D%/installed/blib/arch/auto/NetLogger/NetLogger.so '$(DESTDIR)$(perlmoduledir)/auto/NetLogger/'
	for page in $(perl_pages); do \
		$(INSTALL_DATA) %D%/installed/blib/man3/$$page.3pm '$(DESTDIR)$(mandir)/man3/' || exit 1; done
uninstall-perl:
	cd '$(DESTDIR)$(perlmoduledir)' && rm -f $(perl_files) && rm -rf auto/NetLogger && \
		rmdir NetLogger Log/Any/Adapter Log/Any Log 2>/dev/null || true
	cd '$(DESTDIR)$(mandir)/man3' && rm -f $(perl_pages:=.3pm)
CLEANFILES += %D%/built %D%/build.log
clean-local: clean-perl
clean-perl:
	-rm -rf %D%/work %D%/installed
.PHONY: clean-perl install-perl uninstall-perl
