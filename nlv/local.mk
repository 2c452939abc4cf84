# All of nlv except the window, for the program, the tests and bench/nlv.
if BUILD_NLV
noinst_LIBRARIES += nlv/libscene.a
bin_PROGRAMS += nlv/nlv
endif
nlv_libscene_a_SOURCES = \
	%D%/scene/render.c %D%/scene/render.h \
	%D%/model/names.c %D%/model/names.h %D%/model/spec.c %D%/model/spec.h %D%/model/batch.c %D%/model/batch.h \
	%D%/model/list.c %D%/model/list.h %D%/model/store.c %D%/model/store.h %D%/model/edges.c %D%/model/edges.h %D%/model/request_lines.c %D%/model/request_lines.h %D%/model/waterfall.c %D%/model/waterfall.h %D%/model/slow.c %D%/model/slow.h %D%/model/event_order.c %D%/model/event_order.h %D%/model/scan.c %D%/model/scan.h \
	%D%/model/log_file.c %D%/model/log_file.h %D%/model/block_cutter.c %D%/model/block_cutter.h %D%/model/source.c %D%/model/source.h %D%/model/prints.c %D%/model/prints.h %D%/model/index.c %D%/model/index.h \
	%D%/model/statistics.c %D%/model/statistics.h %D%/model/search.c %D%/model/search.h %D%/model/filters.c %D%/model/filters.h %D%/model/comparison.c %D%/model/comparison.h %D%/model/compare_query.c %D%/model/compare_query.h %D%/model/subset.c %D%/model/subset.h %D%/model/checks.c %D%/model/checks.h %D%/model/session.c %D%/model/session.h %D%/model/export.c %D%/model/export.h \
	%D%/model/catalog.c %D%/model/catalog.h %D%/model/colors.c %D%/model/colors.h %D%/model/color_filter.c %D%/model/color_filter.h %D%/model/model.c %D%/model/model.h %D%/model/model_loading.h %D%/model/loader.c %D%/model/loader.h %D%/model/inference.c %D%/model/inference.h %D%/model/index_keeper.c %D%/model/index_keeper.h \
	%D%/model/full_store.c %D%/model/full_store.h %D%/model/clock_learning.c %D%/model/clock_learning.h %D%/model/time_zones.c %D%/model/time_zones.h %D%/model/feed.c %D%/model/feed.h \
	%D%/model/heat_map.c %D%/model/heat_map.h %D%/model/request_list.c %D%/model/request_list.h %D%/model/request_name.c %D%/model/request_name.h %D%/model/record_walk.c %D%/model/record_walk.h %D%/model/reconnection.c %D%/model/reconnection.h %D%/model/tracks.c %D%/model/tracks.h %D%/model/threads.c %D%/model/threads.h %D%/model/request_reading.c %D%/model/request_reading.h \
	%D%/scene/scene.c %D%/scene/scene.h %D%/scene/layout.c %D%/scene/layout.h %D%/scene/axis.c %D%/scene/axis.h \
	%D%/scene/text.c %D%/scene/text.h %D%/scene/palette.c %D%/scene/palette.h %D%/scene/beside.c %D%/scene/beside.h %D%/scene/density.c %D%/scene/density.h \
	%D%/scene/threads_layer.c %D%/scene/lifelines_layer.c %D%/scene/loadlines_layer.c %D%/scene/points_layer.c %D%/scene/bars.c %D%/scene/throughput_layer.c %D%/scene/legend_layer.c %D%/scene/overview_layer.c %D%/scene/heat_layer.c %D%/scene/heat_scale.c %D%/scene/heat_scale.h %D%/scene/histogram_layer.c %D%/scene/waterfall_drawing.c %D%/scene/waterfall_drawing.h %D%/scene/marks_layer.c %D%/scene/comparison_drawing.c %D%/scene/comparison_drawing.h \
	%D%/scene/layers.h \
	%D%/serve/query.c %D%/serve/query.h %D%/serve/picture.c %D%/serve/picture.h %D%/serve/views.c %D%/serve/views.h \
	%D%/serve/jaeger.c %D%/serve/jaeger.h %D%/serve/jaeger_trace.c %D%/serve/jaeger_trace.h
nlv_libscene_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nlv_libscene_a_CFLAGS = $(AM_CFLAGS) $(GTK_CFLAGS) $(SERVE_CFLAGS) $(GLIB_CFLAGS) -pthread

nlv_nlv_SOURCES = %D%/main.c %D%/view/window.c %D%/view/window.h %D%/view/canvas.c %D%/view/canvas.h \
	%D%/view/chooser.c %D%/view/chooser.h %D%/view/commands.c %D%/view/commands.h %D%/view/history.c %D%/view/history.h %D%/view/search_bar.c %D%/view/search_bar.h \
	%D%/view/editor.c %D%/view/editor.h %D%/view/lifeline_page.c %D%/view/lifeline_page.h \
	%D%/view/row_page.c %D%/view/row_page.h %D%/view/name_list.c %D%/view/name_list.h \
	%D%/view/session_keeper.c %D%/view/session_keeper.h %D%/view/bookmarks.c %D%/view/bookmarks.h \
	%D%/view/command_palette.c %D%/view/command_palette.h %D%/view/exporting.c %D%/view/exporting.h %D%/view/playback.c %D%/view/playback.h %D%/view/slow_watch.c %D%/view/slow_watch.h \
	%D%/agents/agents.c %D%/agents/agents.h %D%/agents/subscription.c %D%/agents/subscription.h \
	%D%/view/sensor_pane.c %D%/view/sensor_pane.h \
	%D%/serve/serve.c %D%/serve/serve.h %D%/serve/server.c %D%/serve/server.h %D%/serve/page.h \
	%D%/view/side_panel.c %D%/view/side_panel.h %D%/view/table.c %D%/view/table.h %D%/view/request_pane.c %D%/view/request_pane.h %D%/view/compare_window.c %D%/view/compare_window.h %D%/view/welcome.c %D%/view/welcome.h
nlv_nlv_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D%
nlv_nlv_CFLAGS = $(AM_CFLAGS) $(GTK_CFLAGS) $(SERVE_CFLAGS) $(GLIB_CFLAGS)
nlv_nlv_LDADD = nlv/libscene.a $(common_libs) $(OPENSSL_LIBS) $(GTK_LIBS) $(SERVE_LIBS)
nodist_nlv_nlv_SOURCES = nlv/serve/page.c

# The page of --serve, as a C text.
EXTRA_DIST += %D%/serve/page.html
CLEANFILES += nlv/serve/page.c
nlv/serve/page.c: %D%/serve/page.html
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { echo '#include "serve/page.h"'; echo 'const char page_text[] ='; \
	  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$$/\\n"/' $(srcdir)/nlv/serve/page.html; echo '    ;'; } > $@.new && mv $@.new $@

# Drawings that --config finds by name, and files for the desktop.
drawingsdir = $(datadir)/netlogger/drawings
dist_drawings_DATA = examples/dpss/dpss.nlv \
	%D%/drawings/http.nlv %D%/drawings/gridftp.nlv %D%/drawings/bp-workflow.nlv %D%/drawings/kernel-sched.nlv %D%/drawings/kernel-interrupts.nlv \
	%D%/drawings/connections.nlv %D%/drawings/time-sequence.nlv %D%/drawings/path.nlv %D%/drawings/kernel-cpus.nlv %D%/drawings/kernel-request.nlv
schemasdir = $(datadir)/netlogger/schemas
dist_schemas_DATA = examples/dpss/dpss.schema
desktopdir = $(datadir)/applications
metainfodir = $(datadir)/metainfo
mimedir = $(datadir)/mime/packages
icondir = $(datadir)/icons/hicolor/scalable/apps
if BUILD_NLV
desktop_DATA = %D%/desktop/org.netlogger.nlv.desktop
metainfo_DATA = %D%/desktop/org.netlogger.nlv.metainfo.xml
mime_DATA = %D%/desktop/netlogger.xml
icon_DATA = %D%/desktop/org.netlogger.nlv.svg
endif
EXTRA_DIST += \
	%D%/desktop/org.netlogger.nlv.desktop %D%/desktop/org.netlogger.nlv.metainfo.xml \
	%D%/desktop/netlogger.xml %D%/desktop/org.netlogger.nlv.svg

# Instructions for adding to this directory.
EXTRA_DIST += %D%/README.md
