package netlogger;

import java.util.logging.ErrorManager;
import java.util.logging.Handler;

/**
 * Takes what java.util.logging is given, and SLF4J through its slf4j-jdk14: each becomes an event called Log with the
 * fields MSG, LOGGER, and, where there is an exception, EXCEPTION. Severe is Error, Warning is Warning, Info Usage, the finer
 * ones Debug.
 */
public final class NetLogHandler extends Handler {
    private final NetLogger log;
    private final boolean closes;

    /**
     * Into the log that NETLOGGER_DEST names, which is this handler's. What logging.properties can ask for.
     *
     * @throws NetLoggerException when it cannot be opened
     */
    public NetLogHandler() {
        log = new NetLogger("java");
        log.open();
        closes = true;
    }

    /**
     * Into a log.
     *
     * @param log stays the caller's, to be closed after the handler
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
        try {
            if (closes)
                log.close();
        } catch (NetLoggerException e) {
            reportError(null, e, ErrorManager.CLOSE_FAILURE);
        }
    }
}
