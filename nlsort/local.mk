bin_PROGRAMS += nlsort/nlsort
nlsort_nlsort_SOURCES = \
	%D%/main.c %D%/key.c %D%/key.h %D%/item.h %D%/store.c %D%/store.h %D%/spill.c %D%/spill.h \
	%D%/merge.c %D%/merge.h %D%/input.c %D%/input.h %D%/packed.c %D%/packed.h %D%/temporary.c %D%/temporary.h \
	%D%/live.c %D%/live.h %D%/by_time.c %D%/by_time.h %D%/load.c %D%/load.h %D%/table.c %D%/table.h %D%/order.c %D%/order.h \
	%D%/flow.c %D%/flow.h %D%/cursors.c %D%/cursors.h %D%/ordered.c %D%/ordered.h %D%/unique.c %D%/unique.h \
	%D%/gather.c %D%/gather.h %D%/runs.c %D%/runs.h %D%/windows.c %D%/windows.h %D%/workers.c %D%/workers.h %D%/big.c %D%/big.h %D%/shown.c %D%/shown.h %D%/fix_clocks.c %D%/fix_clocks.h
nlsort_nlsort_CFLAGS = $(AM_CFLAGS) -pthread
nlsort_nlsort_LDADD = $(common_libs) -lpthread
