package netlogger;

import java.util.logging.ErrorManager;
import java.util.logging.Handler;

/**
 * A handler of java.util.logging, and of SLF4J with slf4j-jdk14. Each message becomes an event Log with the fields MSG
 * and LOGGER. If the message has an exception, the event also has the field EXCEPTION. Severe becomes Error, Warning
 * stays Warning, Info becomes Usage, and finer levels become Debug.
 */
public final class NetLogHandler extends Handler {
    private final NetLogger log;
    private final boolean closes;

    /**
     * Creates a handler with its own log, whose destination is in NETLOGGER_DEST. logging.properties requires this
     * constructor.
     *
     * @throws NetLoggerException if the destination is invalid
     */
    public NetLogHandler() {
        log = new NetLogger("java");
        log.open();
        closes = true;
    }

    /**
     * Creates a handler for a log.
     *
     * @param log a log of the caller, who closes it after the handler
     */
    public NetLogHandler(NetLogger log) {
        this.log = log;
        closes = false;
    }

    static Level levelOf(java.util.logging.Level level) {
        int value = level.intValue();
        if (value >= java.util.logging.Level.SEVERE.intValue())
            return Level.ERROR;
        if (value >= java.util.logging.Level.WARNING.intValue())
            return Level.WARNING;
        return value >= java.util.logging.Level.INFO.intValue() ? Level.USAGE : Level.DEBUG;
    }

    @Override
    public void publish(java.util.logging.LogRecord record) {
        if (!isLoggable(record))
            return;
        String message = new java.util.logging.SimpleFormatter().formatMessage(record);
        Event event = log.event(levelOf(record.getLevel()), "Log").put("MSG", message);
        event.put("LOGGER", record.getLoggerName());
        if (record.getThrown() != null)
            event.put("EXCEPTION", record.getThrown().toString());
        event.write();
    }

    @Override
    public void flush() {
        try {
            log.flush();
        } catch (NetLoggerException e) {
            reportError(null, e, ErrorManager.FLUSH_FAILURE);
        }
    }

    @Override
    public void close() {
        if (closes)
            log.close();
    }
}
