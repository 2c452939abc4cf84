package netlogger;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/** A record of a reader. */
public final class LogRecord {
    private final long timeNs;
    private final Level level;
    private final String levelText, host, prog, event;
    private final Map<String, byte[]> fields = new LinkedHashMap<>();

    /* The layout of the bytes from netlogger_jni.c: the time, the level, texts with their sizes, and last the names and
     * values of the fields. */
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

    /**
     * Returns the time.
     *
     * @return nanoseconds since 1970 UTC
     */
    public long timeNs() {
        return timeNs;
    }

    /**
     * Returns the time.
     *
     * @return the time with nanoseconds
     */
    public Instant time() {
        return Instant.ofEpochSecond(Math.floorDiv(timeNs, 1_000_000_000L), Math.floorMod(timeNs, 1_000_000_000L));
    }

    /**
     * Returns the level.
     *
     * @return null if the record has no level, or a level with another spelling: {@link #levelText}
     */
    public Level level() {
        return level;
    }

    /**
     * Returns a level that is not a level of ULM.
     *
     * @return the original spelling; null if {@link #level} returns the level, or the record has no level
     */
    public String levelText() {
        return levelText;
    }

    /**
     * Returns the host.
     *
     * @return the host's name; null if the record has no host
     */
    public String host() {
        return host;
    }

    /**
     * Returns the program.
     *
     * @return the program's name; null if the record has no program
     */
    public String prog() {
        return prog;
    }

    /**
     * Returns the event.
     *
     * @return the event's name; null if the record has no event
     */
    public String event() {
        return event;
    }

    /**
     * Returns the value of a field as text. Bytes that are not UTF-8 are replaced; see {@link #bytes}.
     *
     * @param name the field's name
     * @return its value; null if there is no such field
     */
    public String get(String name) {
        byte[] value = fields.get(name);
        return value == null ? null : Native.text(value);
    }

    /**
     * Returns the bytes of a field's value.
     *
     * @param name the field's name
     * @return its value; null if there is no such field
     */
    public byte[] bytes(String name) {
        byte[] value = fields.get(name);
        return value == null ? null : value.clone();
    }

    /**
     * Returns the value of a field as an integer.
     *
     * @param name the field's name
     * @return its value
     * @throws NumberFormatException if the value is not such a number, or there is no such field
     */
    public long getLong(String name) {
        return Long.parseLong(String.valueOf(get(name)));
    }

    /**
     * Returns the value of a field as a number, which may be "nan", "inf" or "-inf".
     *
     * @param name the field's name
     * @return its value
     * @throws NumberFormatException if the value is not such a number, or there is no such field
     */
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

    /**
     * Returns all fields.
     *
     * @return the names and values, in the order of the record; if a name repeats, only the first field with this name
     */
    public Map<String, String> fields() {
        Map<String, String> all = new LinkedHashMap<>();
        fields.forEach((name, value) -> all.put(name, Native.text(value)));
        return all;
    }
}
