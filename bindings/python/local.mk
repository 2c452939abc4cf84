# The Python binding. setup.py builds it into the build directory, with the library in the build directory. pip installs
# it.
python_binding = \
	%D%/setup.py %D%/pyproject.toml %D%/src/core.h %D%/src/kinds.c %D%/src/log.c %D%/src/module.c %D%/src/reader.c \
	%D%/src/values.c %D%/netlogger/__init__.py %D%/netlogger/_core.pyi %D%/netlogger/_handler.py \
	%D%/netlogger/_log.py %D%/netlogger/_record.py %D%/netlogger/nlapi.py %D%/netlogger/nllog.py %D%/netlogger/py.typed
EXTRA_DIST += $(python_binding) %D%/missing.py %D%/folder.py %D%/MANIFEST.in

# Builds the module into FOLDER. At run time, the module searches for the library in FOUND_IN.
python_build = $(MKDIR_P) %D%/FOLDER && \
	NETLOGGER_CFLAGS="-I$(abs_top_srcdir)/libnetlogger/include $(CPPFLAGS) $(NL_HARDENING)" CC='$(CC)' NETLOGGER_RPATH='FOUND_IN' \
	NETLOGGER_LIBS='-L$(abs_top_builddir)/libnetlogger/.libs -lnetlogger $(NL_HARDENING_LDFLAGS)' PYTHONDONTWRITEBYTECODE=1 \
	$(BINDING_PYTHON) $(srcdir)/%D%/setup.py -q build --force --build-base '$(abs_top_builddir)/%D%/work' \
		--build-lib '$(abs_top_builddir)/%D%/FOLDER' > %D%/build.log 2>&1 || { cat %D%/build.log >&2; exit 1; }

# One module for use in the build directory, and one to be installed.
%D%/built: $(python_binding) libnetlogger/libnetlogger.la
	$(AM_V_GEN)$(subst FOLDER,lib,$(subst FOUND_IN,$(abs_top_builddir)/libnetlogger/.libs,$(python_build)))
	$(AM_V_at)$(subst FOLDER,installed,$(subst FOUND_IN,$(installed_rpath),$(python_build)))
	$(AM_V_at)touch $@
if BUILD_PYTHON
all-local: %D%/built
install-exec-local: install-python
uninstall-local: uninstall-python
endif
python_info = netlogger-$(PACKAGE_VERSION).dist-info

install-python: %D%/built
	$(MKDIR_P) '$(DESTDIR)$(pythonmoduledir)/netlogger' '$(DESTDIR)$(pythonmoduledir)/$(python_info)'
	$(INSTALL_DATA) %D%/installed/netlogger/*.py* '$(DESTDIR)$(pythonmoduledir)/netlogger/'
	$(INSTALL_DATA) %D%/installed/netlogger/*.typed %D%/installed/netlogger/*.so '$(DESTDIR)$(pythonmoduledir)/netlogger/'
	printf 'Metadata-Version: 2.1\nName: netlogger\nVersion: %s\n' '$(PACKAGE_VERSION)' \
		> '$(DESTDIR)$(pythonmoduledir)/$(python_info)/METADATA'
	echo make > '$(DESTDIR)$(pythonmoduledir)/$(python_info)/INSTALLER'
	$(BINDING_PYTHON) -m compileall -q -s '$(DESTDIR)' '$(DESTDIR)$(pythonmoduledir)/netlogger'
uninstall-python:
	rm -rf '$(DESTDIR)$(pythonmoduledir)/netlogger' '$(DESTDIR)$(pythonmoduledir)/$(python_info)'
CLEANFILES += %D%/built %D%/build.log
clean-local: clean-python
clean-python:
	-rm -rf %D%/lib %D%/installed %D%/work
.PHONY: clean-python install-python uninstall-python
