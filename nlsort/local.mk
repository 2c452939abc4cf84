bin_PROGRAMS += nlsort/nlsort
nlsort_nlsort_SOURCES = \
	%D%/main.c %D%/key.c %D%/key.h %D%/item.h %D%/store.c %D%/store.h %D%/spill.c %D%/spill.h \
	%D%/merge.c %D%/merge.h %D%/input.c %D%/input.h
nlsort_nlsort_CFLAGS = $(AM_CFLAGS) -pthread
nlsort_nlsort_LDADD = libnetlogger/libprogram.la libnetlogger/libnetlogger.la -lpthread
