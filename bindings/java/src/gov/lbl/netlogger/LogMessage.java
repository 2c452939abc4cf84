package gov.lbl.netlogger;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;

/**
 * The message class of NetLogger 4: an event whose text is a line in the format BP, for any text logger.
 *
 * <pre>
 * logger.info(new LogMessage("write.data").add("size", 49332));
 * </pre>
 *
 * <p>New programs use {@code netlogger.NetLogger}.
 */
public class LogMessage {
    /** The name of the appender that old configurations of Log4j use. */
    public static final String APPENDER = "NETLOGGER";
    /** The field with the name of the event. */
    public static final String EVENT_KW = "event";
    /** The field with the time. */
    public static final String DATE_KW = "ts";
    /** A date of the usual length. */
    public static final String FAKE_DATE = "1999-01-01T11:59:59.999999Z";
    /** The beginning of the field with the level. */
    public static final String LEVEL_KW = "level=";

    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'").withZone(ZoneOffset.UTC);

    private final StringBuilder fields = new StringBuilder();
    private Instant time = Instant.now();

    /**
     * Creates a message with the current time.
     *
     * @param event the name of the event
     */
    public LogMessage(String event) {
        append(EVENT_KW, quoted(event));
    }

    /**
     * Adds a field with a text. A text that begins and ends with a quote is used as it is.
     *
     * @param name the name of the field
     * @param value the text; null means the empty text
     * @return this
     */
    public LogMessage add(String name, String value) {
        return append(name, quoted(value));
    }

    /**
     * Adds a field with a number.
     *
     * @param name the name of the field
     * @param value the number
     * @return this
     */
    public LogMessage add(String name, int value) {
        return append(name, Integer.toString(value));
    }

    /**
     * Adds a field with a number.
     *
     * @param name the name of the field
     * @param value the number
     * @return this
     */
    public LogMessage add(String name, long value) {
        return append(name, Long.toString(value));
    }

    /**
     * Adds a field with a number.
     *
     * @param name the name of the field
     * @param value the number
     * @return this
     */
    public LogMessage add(String name, float value) {
        return append(name, Float.toString(value));
    }

    /**
     * Adds a field with a number.
     *
     * @param name the name of the field
     * @param value the number
     * @return this
     */
    public LogMessage add(String name, double value) {
        return append(name, Double.toString(value));
    }

    /**
     * Sets the time.
     *
     * @param millis milliseconds since 1970-01-01 UTC
     * @return this
     */
    public LogMessage setTimeStampMillis(long millis) {
        time = Instant.ofEpochMilli(millis);
        return this;
    }

    /**
     * Sets the time.
     *
     * @param nanos a value of {@link System#nanoTime()}
     * @return this
     */
    public LogMessage setTimeStampNanos(long nanos) {
        time = Instant.now().plusNanos(nanos - System.nanoTime());
        return this;
    }

    /** Returns the line, without a newline. */
    @Override
    public String toString() {
        return DATE_KW + '=' + TIME.format(time) + fields;
    }

    private LogMessage append(String name, String value) {
        fields.append(' ').append(name).append('=').append(value);
        return this;
    }

    private static String quoted(String value) {
        if (value == null || value.isEmpty())
            return "\"\"";
        if (value.length() > 1 && value.startsWith("\"") && value.endsWith("\""))
            return value;
        boolean bare = true;
        for (int i = 0; i < value.length() && bare; i++)
            bare = value.charAt(i) > ' ' && value.charAt(i) != '"' && value.charAt(i) != '=' && value.charAt(i) != 127;
        if (bare)
            return value;
        return '"' + value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\r", "\\r") + '"';
    }
}
