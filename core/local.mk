# Code that the library and the programs share: a static library whose symbols stay hidden.
noinst_LTLIBRARIES += %D%/libcore.la
%C%_libcore_la_SOURCES = \
	%D%/base/error.c %D%/base/error.h %D%/base/memory.h %D%/base/program_memory.h %D%/base/environment_value.h %D%/base/buffer.c %D%/base/time.c %D%/base/time_internal.h %D%/base/monotonic.h %D%/base/thread.h \
	%D%/base/distribution.c %D%/base/distribution.h %D%/base/replacement.c %D%/base/replacement.h %D%/base/option.c %D%/base/option.h \
	%D%/base/clock_quality.c %D%/base/clock_quality.h \
	%D%/base/level.c %D%/base/signals.c %D%/base/signals.h %D%/base/write_some.h %D%/base/descriptor.h %D%/base/text.h %D%/base/hash_bytes.h %D%/base/pages.h \
	%D%/record/record.c %D%/record/record_internal.h %D%/record/number.c %D%/record/number.h \
	%D%/record/bytes.h %D%/record/format.c %D%/record/ulm.c %D%/record/ulm.h \
	%D%/record/bp.c %D%/record/bp.h %D%/record/text.c %D%/record/lines.c %D%/record/text_write.c %D%/record/terminal.c %D%/record/terminal.h %D%/record/text.h \
	%D%/record/varint.h %D%/record/work.h %D%/reader/decoder_work.h %D%/record/block.h %D%/record/zstd_magic.h %D%/record/field_name.h %D%/record/crc32c.c %D%/record/crc32c.h \
	%D%/record/encoder.c %D%/record/block_write.c %D%/record/block_write.h %D%/record/block_read.c %D%/record/block_read.h \
	%D%/filter/filter.c %D%/filter/filter_cost.h %D%/filter/filter_internal.h %D%/filter/parse.c %D%/filter/operand.c %D%/filter/print.c \
	%D%/filter/pattern.c %D%/filter/pattern.h %D%/filter/pattern_build.h \
	%D%/filter/glob.c %D%/filter/regex.c %D%/filter/bracket.c \
	%D%/transport/url.c %D%/transport/destination.c %D%/transport/destination.h \
	%D%/transport/destination_file.c %D%/transport/destination_socket.c %D%/transport/dial.c %D%/transport/dial.h \
	%D%/transport/channel.c %D%/transport/channel.h %D%/transport/tls.c %D%/transport/tls_names.c %D%/transport/tls_names.h \
	%D%/transport/spool.c %D%/transport/spool.h %D%/transport/destination_syslog.c %D%/transport/destination_memory.c \
	%D%/transport/source.c %D%/transport/source_collector.c %D%/transport/source_collector.h %D%/transport/source.h %D%/transport/watch.c %D%/transport/watch.h \
	%D%/transport/writer.c %D%/transport/writer_internal.h \
	%D%/reader/decoder.c %D%/reader/decoder_internal.h %D%/reader/decoder_blocks.c \
	%D%/reader/input.c %D%/reader/input.h %D%/reader/sequences.c %D%/reader/sequences.h %D%/reader/streams.c %D%/reader/streams.h %D%/reader/admission.h %D%/reader/reader.c %D%/reader/archive.c \
	%D%/reader/time_index.c %D%/reader/time_index.h
%C%_libcore_la_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS) $(OPENSSL_CFLAGS) -pthread -fno-semantic-interposition

core_libs = core/libcore.la $(ZSTD_LIBS) $(OPENSSL_LIBS) -lpthread
