package netlogger;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/** A record that was read. */
public final class LogRecord {
    private final long timeNs;
    private final Level level;
    private final String levelText, host, prog, event;
    private final Map<String, byte[]> fields = new LinkedHashMap<>();

    /* As netlogger_jni.c packs it: time, level, then texts with their sizes; the names and values of fields come last. */
    LogRecord(byte[] packed) {
        ByteBuffer in = ByteBuffer.wrap(packed).order(ByteOrder.nativeOrder());
        timeNs = in.getLong();
        level = Level.of(in.getInt());
        levelText = text(in);
        host = text(in);
        prog = text(in);
        event = text(in);
        while (in.hasRemaining()) {
            String name = text(in);
            fields.putIfAbsent(name, bytes(in));
        }
    }

    private static byte[] bytes(ByteBuffer in) {
        int size = in.getInt();
        if (size < 0)
            return null;
        byte[] bytes = new byte[size];
        in.get(bytes);
        return bytes;
    }

    private static String text(ByteBuffer in) {
        byte[] bytes = bytes(in);
        return bytes == null ? null : Native.text(bytes);
    }

    /** Nanoseconds since 1970 UTC. */
    public long timeNs() {
        return timeNs;
    }

    public Instant time() {
        return Instant.ofEpochSecond(Math.floorDiv(timeNs, 1_000_000_000L), Math.floorMod(timeNs, 1_000_000_000L));
    }

    /** Null when the record has none, or one of another spelling: {@link #levelText}. */
    public Level level() {
        return level;
    }

    public String levelText() {
        return levelText;
    }

    /** Null, here and below, when the record has none. */
    public String host() {
        return host;
    }

    public String prog() {
        return prog;
    }

    public String event() {
        return event;
    }

    /** The value of a field as text; bytes that are no UTF-8 are replaced: {@link #bytes}. */
    public String get(String name) {
        byte[] value = fields.get(name);
        return value == null ? null : Native.text(value);
    }

    public byte[] bytes(String name) {
        byte[] value = fields.get(name);
        return value == null ? null : value.clone();
    }

    /** The value of a field as a number; NumberFormatException when it is none. */
    public long getLong(String name) {
        return Long.parseLong(String.valueOf(get(name)));
    }

    /** The same; "nan", "inf" and "-inf" are what the library writes. */
    public double getDouble(String name) {
        String value = String.valueOf(get(name));
        switch (value) {
            case "nan":
                return Double.NaN;
            case "inf":
                return Double.POSITIVE_INFINITY;
            case "-inf":
                return Double.NEGATIVE_INFINITY;
            default:
                return Double.parseDouble(value);
        }
    }

    /** Names and values, in their order; of a name that repeats the first. */
    public Map<String, String> fields() {
        Map<String, String> all = new LinkedHashMap<>();
        fields.forEach((name, value) -> all.put(name, Native.text(value)));
        return all;
    }
}
