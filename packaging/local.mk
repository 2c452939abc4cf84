# Units for systemd, and configurations with explanations.
nodist_systemdsystemunit_DATA = %D%/nlrecover.service
dist_systemdsystemunit_DATA = %D%/nlrecover.timer
if BUILD_NETLOGD
nodist_systemdsystemunit_DATA += %D%/netlogd.service
dist_systemdsystemunit_DATA += %D%/netlogd.socket
endif
CLEANFILES += %D%/netlogd.service %D%/nlagentd.service %D%/nlrecover.service
EXTRA_DIST += %D%/nlrecover.service.in %D%/dependencies %D%/install-dependencies %D%/netlogd.conf %D%/nlagentd.conf %D%/netlogd.service.in %D%/nlagentd.service.in

# Completion. bash needs a file for each program, named after the program.
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = $(completions)
completions = completion/netlogctl completion/netlogd completion/nlagent completion/nlagentd completion/nlarchive completion/nlconv \
	completion/nldiag completion/nlkernel completion/nlrecover completion/nlschema completion/nlsensor completion/nlsort \
	completion/nlstat completion/nlv completion/nlwrite
$(completions): packaging/completion/netlogger.bash
	$(AM_V_GEN)$(MKDIR_P) completion && cp $(srcdir)/packaging/completion/netlogger.bash $@
CLEANFILES += $(completions)
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %D%/completion/_netlogger
EXTRA_DIST += %D%/completion/netlogger.bash

# Debian packages, which packaging/make-packages builds.
EXTRA_DIST += \
	%D%/debian/changelog \
	%D%/debian/control \
	%D%/debian/copyright \
	%D%/debian/libnetlogger-dev.install \
	%D%/debian/libnetlogger-fortran-dev.install \
	%D%/debian/libnetlogger-java.install \
	%D%/debian/libnetlogger-perl.install \
	%D%/debian/libnetlogger0.install \
	%D%/debian/netlogger-common.install \
	%D%/debian/netlogger.docs \
	%D%/debian/netlogger.install \
	%D%/debian/netlogger.postinst \
	%D%/debian/netlogger.postrm \
	%D%/debian/netlogger.prerm \
	%D%/debian/nlv.install \
	%D%/debian/python3-netlogger.install \
	%D%/debian/rules \
	%D%/debian/source/format \
	%D%/make-packages

packaging/netlogd.service: packaging/netlogd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) packaging && sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/packaging/netlogd.service.in >$@

packaging/nlrecover.service: packaging/nlrecover.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) packaging && sed -e 's|@bindir[@]|$(bindir)|g' $(srcdir)/packaging/nlrecover.service.in >$@

if BUILD_NLAGENT
nodist_systemdsystemunit_DATA += %D%/nlagentd.service
endif

packaging/nlagentd.service: packaging/nlagentd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) packaging && sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/packaging/nlagentd.service.in >$@

# Update the desktop's caches of MIME types, entries and icons, if they exist. Do not update them while staging a package.
refresh_desktop = test -n "$(DESTDIR)" || test ! -e "$(datadir)/mime/mime.cache" || { \
	update-mime-database "$(datadir)/mime"; update-desktop-database "$(datadir)/applications"; \
	gtk-update-icon-cache -q -t -f "$(datadir)/icons/hicolor"; } >/dev/null 2>&1 || true

# Configurations of the programs that are built.
configurations =
if BUILD_NETLOGD
configurations += netlogd.conf
endif
if BUILD_NLAGENT
configurations += nlagentd.conf
endif

# Do not overwrite an existing configuration, and remove it only if it still equals the example.
install-data-hook:
	$(MKDIR_P) "$(DESTDIR)$(sysconfdir)"
	for file in $(configurations); do test -e "$(DESTDIR)$(sysconfdir)/$$file" || \
		$(INSTALL_DATA) "$(srcdir)/packaging/$$file" "$(DESTDIR)$(sysconfdir)/$$file" || exit 1; done
if BUILD_NLV
	$(refresh_desktop)
endif

# Directories that belong to this package; they are removed if they are empty.
own_directories = $(includedir)/netlogger/fortran $(includedir)/netlogger/classic $(includedir)/netlogger \
	$(libexecdir)/netlogger $(datadir)/netlogger/drawings $(datadir)/netlogger/rules \
	$(datadir)/netlogger/schemas $(datadir)/netlogger

uninstall-hook:
	for directory in $(own_directories); do rmdir "$(DESTDIR)$$directory" 2>/dev/null || true; done
	for file in $(configurations); do \
		if cmp -s "$(srcdir)/packaging/$$file" "$(DESTDIR)$(sysconfdir)/$$file"; then \
			rm -f "$(DESTDIR)$(sysconfdir)/$$file"; fi; done
if BUILD_NLV
	$(refresh_desktop)
endif

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md
