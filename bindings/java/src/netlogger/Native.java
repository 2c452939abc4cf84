package netlogger;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * The native functions. This class loads the native library from the file that the property netlogger.library names,
 * from java.library.path, or from this jar through a temporary file.
 */
final class Native {
    private Native() {
    }

    static {
        load();
    }

    private static void load() {
        String named = System.getProperty("netlogger.library");
        if (named != null) {
            System.load(named);
            return;
        }
        try {
            System.loadLibrary("netlogger_jni");
        } catch (UnsatisfiedLinkError notThere) {
            loadFromJar(notThere);
        }
    }

    private static void loadFromJar(UnsatisfiedLinkError notThere) {
        String name = "libnetlogger_jni.so";
        try (InputStream in = Native.class.getResourceAsStream("/netlogger/native/" + name)) {
            if (in == null)
                throw notThere;
            Path directory = Files.createTempDirectory("netlogger");
            Path file = directory.resolve(name);
            try {
                Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
            } finally { // the name is not needed after loading
                Files.deleteIfExists(file);
                Files.deleteIfExists(directory);
            }
        } catch (IOException e) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError("cannot unpack the native part of netlogger: " + e);
            error.initCause(e);
            throw error;
        }
    }

    /** Returns the UTF-8 bytes of text; null for null. */
    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Returns the library's message for the latest failure of this thread. */
    static NetLoggerException failure() {
        return new NetLoggerException(text(errorMessage()));
    }

    private static native byte[] errorMessage();

    /** Creates a handle of a log, which is never freed; 0 is a log that is never open. Thread-safe. */
    static native long newLog();

    /** Opens a log that is not open; returns false if logging is off. Throws if the destination is invalid. url may be null. */
    static native boolean open(long log, byte[] prog, byte[] url);

    /** The following functions do nothing if the log is not open; false and negative results are failures. */
    static native boolean flush(long log);

    /** Closes the log. First waits for threads that are using the log. */
    static native boolean close(long log);

    static native void setLevel(long log, int level);

    static native boolean control(long log, byte[] commands);

    static native boolean isOn(long log, int level);

    /** Returns 1, 0 if the event is off, or -1 if it is lost. */
    static native int writeText(long log, byte[] event, byte[] fields);

    /** Returns the kind of events with this level, name and names of fields. */
    static native long newKind(int level, byte[] event, byte[][] names);

    static native void freeKind(long kind);

    /** Writes an event with the fields at address, in the layout of {@link Event}. */
    static native int writeEvent(long log, long kind, long address);

    /**
     * Begins a span with fields in the layout of writeEvent. name ends with a byte 0. Returns the state of the span, or only the
     * context if the span is off.
     */
    static native byte[] beginSpan(long log, int level, byte[] name, byte[] parent, byte[][] names, long address);

    static native void endSpan(long log, byte[] state, byte[] name, int status, byte[][] names, long address);

    static native byte[] attachContext(byte[] context);

    static native byte[] currentContext();

    static native byte[] parseTraceparent(byte[] text);

    static native byte[] formatTraceparent(byte[] context);

    static native byte[] joinTracestate(byte[][] headers);

    static native long addressOf(ByteBuffer buffer);

    static native long openReader(byte[] source, boolean follow, byte[] where);

    /** Returns the next record, packed for {@link LogRecord}; null at the end; empty if none is available yet. */
    static native byte[] next(long reader);

    static native long malformed(long reader);

    static native void closeReader(long reader);
}
