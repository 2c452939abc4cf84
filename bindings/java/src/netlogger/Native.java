package netlogger;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * The calls into the library. Its native part is found by itself: where the property netlogger.library says, else on
 * java.library.path, else in this jar, from where it is copied to a temporary file.
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
            Path folder = Files.createTempDirectory("netlogger");
            Path file = folder.resolve(name);
            try {
                Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
            } finally { // once it is loaded nobody needs its name
                Files.deleteIfExists(file);
                Files.deleteIfExists(folder);
            }
        } catch (IOException e) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError("netlogger's native part cannot be unpacked: " + e);
            error.initCause(e);
            throw error;
        }
    }

    /** The bytes of text as the library takes them; null stays null. */
    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The library's words for the latest failure of this thread. */
    static NetLoggerException failure() {
        return new NetLoggerException(text(errorMessage()));
    }

    private static native byte[] errorMessage();

    /** What stands for a log, for ever; 0, below, is one that is never open. Any number of threads may use it meanwhile. */
    static native long newLog();

    /** Opens it, when it is not open; false when it is off. Throws when it cannot be opened. url may be null. */
    static native boolean open(long log, byte[] prog, byte[] url);

    /** All of these do nothing when it is not open; false or a negative result is a failure. */
    static native boolean flush(long log);

    /** Waits for who is using it. */
    static native boolean close(long log);

    static native void setLevel(long log, int level);

    static native boolean control(long log, byte[] commands);

    static native boolean isOn(long log, int level);

    /** 1, 0 when it is off, -1 when it is lost. */
    static native int writeText(long log, byte[] event, byte[] fields);

    /** What an event of that level, name and names of fields is called by. */
    static native long newKind(int level, byte[] event, byte[][] names);

    static native void freeKind(long kind);

    /** The fields lie at address, as {@link Event} puts them there. */
    static native int writeEvent(long log, long kind, long address);

    static native long addressOf(ByteBuffer buffer);

    static native long openReader(byte[] source, boolean follow, byte[] where);

    /** The next record in one piece, as {@link LogRecord} takes it apart; null at the end; empty when none has come yet. */
    static native byte[] next(long reader);

    static native long malformed(long reader);

    static native void closeReader(long reader);
}
