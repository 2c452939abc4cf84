if BUILD_NLV
bin_PROGRAMS += nlv/nlv
endif
nlv_nlv_SOURCES = \
	%D%/main.c %D%/render.c %D%/render.h \
	%D%/model/model.c %D%/model/model.h \
	%D%/scene/scene.c %D%/scene/scene.h %D%/scene/layout.c %D%/scene/layout.h %D%/scene/axis.c %D%/scene/axis.h \
	%D%/scene/text.c %D%/scene/text.h %D%/scene/palette.c %D%/scene/palette.h %D%/scene/lifelines_layer.c \
	%D%/scene/loadlines_layer.c %D%/scene/points_layer.c %D%/scene/layers.h \
	%D%/view/window.c %D%/view/window.h %D%/view/canvas.c %D%/view/canvas.h
nlv_nlv_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nlv_nlv_CFLAGS = $(AM_CFLAGS) $(GTK_CFLAGS) $(GLIB_CFLAGS)
nlv_nlv_LDADD = libnetlogger/libanalysis.la libnetlogger/libprogram.la libnetlogger/libnetlogger.la $(GTK_LIBS) $(GLIB_LIBS) -lm
