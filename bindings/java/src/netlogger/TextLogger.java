package netlogger;

/**
 * A logger with the methods of SLF4J: a message has {} for each argument. Each message becomes an event Log with the
 * fields MSG and LOGGER. If the last argument is an exception without a {}, the event also has the field EXCEPTION.
 */
public final class TextLogger {
    private final NetLogger log;
    private final String name;

    /**
     * Creates a logger.
     *
     * @param log the log, which the caller owns
     * @param name the value of the field LOGGER
     */
    public TextLogger(NetLogger log, String name) {
        this.log = log;
        this.name = name;
    }

    /**
     * Logs a message of level Error.
     *
     * @param message with {@code {}} for each argument
     * @param arguments the values, and possibly an exception
     */
    public void error(String message, Object... arguments) {
        write(Level.ERROR, message, arguments);
    }

    /**
     * Logs a message of level Warning.
     *
     * @param message with {@code {}} for each argument
     * @param arguments the values, and possibly an exception
     */
    public void warn(String message, Object... arguments) {
        write(Level.WARNING, message, arguments);
    }

    /**
     * Logs a message of level Usage.
     *
     * @param message with {@code {}} for each argument
     * @param arguments the values, and possibly an exception
     */
    public void info(String message, Object... arguments) {
        write(Level.USAGE, message, arguments);
    }

    /**
     * Logs a message of level Debug.
     *
     * @param message with {@code {}} for each argument
     * @param arguments the values, and possibly an exception
     */
    public void debug(String message, Object... arguments) {
        write(Level.DEBUG, message, arguments);
    }

    /**
     * Returns whether messages of level Debug are written.
     *
     * @return true if messages of level Debug are written
     */
    public boolean isDebugEnabled() {
        return log.isOn(Level.DEBUG);
    }

    private void write(Level level, String message, Object[] arguments) {
        if (!log.isOn(level))
            return;
        StringBuilder text = new StringBuilder(message.length() + 32);
        int used = format(text, message, arguments);
        Event event = log.event(level, "Log").put("MSG", text).put("LOGGER", name);
        if (used < arguments.length && arguments[arguments.length - 1] instanceof Throwable)
            event.put("EXCEPTION", arguments[arguments.length - 1].toString());
        event.write();
    }

    /* Returns the number of arguments with a {}. */
    private static int format(StringBuilder text, String message, Object[] arguments) {
        int from = 0, used = 0;
        for (int at; used < arguments.length && (at = message.indexOf("{}", from)) >= 0; from = at + 2)
            text.append(message, from, at).append(arguments[used++]);
        text.append(message, from, message.length());
        return used;
    }
}
