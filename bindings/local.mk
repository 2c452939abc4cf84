# The library in other languages, a folder each. C++ is a header.
include_HEADERS += %D%/cxx/netlogger.hpp

# Fortran: a module, which is the compiler's own kind of file, and a small library behind it.
EXTRA_DIST += %D%/fortran/netlogger.f90 %D%/fortran/reader_open.c
if BUILD_FORTRAN
fortranlibdir = $(libdir)
nodist_fortranlib_DATA = %D%/fortran/libnetlogger-fortran.a
fortranmoduledir = $(includedir)/netlogger/fortran
nodist_fortranmodule_DATA = %D%/fortran/netlogger.mod
endif
CLEANFILES += %D%/fortran/*.o %D%/fortran/netlogger.mod %D%/fortran/libnetlogger-fortran.a

%D%/fortran/netlogger.o: %D%/fortran/netlogger.f90
	$(AM_V_GEN)$(MKDIR_P) %D%/fortran && \
	$(FORTRAN) -std=f2008 -O2 -g -fPIC $(FORTRAN_WARNINGS) -J %D%/fortran -c $(srcdir)/%D%/fortran/netlogger.f90 -o $@
# Made with it, whatever its time says.
%D%/fortran/netlogger.mod: %D%/fortran/netlogger.o
	$(AM_V_at)test -f $@ || { rm -f %D%/fortran/netlogger.o; $(MAKE) %D%/fortran/netlogger.o; }
%D%/fortran/reader_open.o: %D%/fortran/reader_open.c
	$(AM_V_GEN)$(MKDIR_P) %D%/fortran && \
	$(CC) $(AM_CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -c $(srcdir)/%D%/fortran/reader_open.c -o $@
%D%/fortran/libnetlogger-fortran.a: %D%/fortran/netlogger.o %D%/fortran/reader_open.o
	$(AM_V_GEN)rm -f $@ && $(AR) cr $@ %D%/fortran/netlogger.o %D%/fortran/reader_open.o
