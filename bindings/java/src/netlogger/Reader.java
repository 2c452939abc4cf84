package netlogger;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The records of a source, once, in their order: a file, "-" for standard input, a collector (x-netlog://HOST), in any of
 * the library's formats. Threads take turns.
 *
 * <pre>{@code
 * try (Reader reader = new Reader("all.log", "LVL <= Warning")) {
 *     for (LogRecord record : reader)
 *         System.out.println(record.event() + " " + record.get("SEND.SZ"));
 * }
 * }</pre>
 */
public final class Reader implements Iterable<LogRecord>, Iterator<LogRecord>, AutoCloseable {
    private long handle;
    private LogRecord ahead;

    /**
     * Opens a source, of which all records are wanted.
     *
     * @param source a file, "-", or x-netlog://HOST
     * @throws NetLoggerException when it cannot be opened
     */
    public Reader(String source) {
        this(source, null, false);
    }

    /**
     * Opens a source.
     *
     * @param source a file, "-", or x-netlog://HOST
     * @param where an expression that chooses records; null for all
     * @throws NetLoggerException when it cannot be opened, or where is no expression
     */
    public Reader(String source, String where) {
        this(source, where, false);
    }

    /**
     * Opens a source.
     *
     * @param source a file, "-", or x-netlog://HOST
     * @param where an expression that chooses records; null for all
     * @param follow whether to wait, at the end, for what is appended
     * @throws NetLoggerException when it cannot be opened, or where is no expression
     */
    public Reader(String source, String where, boolean follow) {
        handle = Native.openReader(Native.bytes(source), follow, Native.bytes(where));
        if (handle == 0)
            throw Native.failure();
    }

    @Override
    public Iterator<LogRecord> iterator() {
        return this;
    }

    /**
     * Whether there is another record. It waits for that where the source has no end; another thread may close the reader
     * meanwhile, which is the end, or interrupt this one.
     *
     * @throws NetLoggerException when the source cannot be read, or the thread is interrupted while it waits
     */
    @Override
    public synchronized boolean hasNext() {
        for (long pause = 1; ahead == null && handle != 0; pause = Math.min(2 * pause, 16)) {
            byte[] packed = Native.next(handle);
            if (packed == null)
                return false;
            if (packed.length > 0)
                ahead = new LogRecord(packed);
            else
                pause(pause);
        }
        return ahead != null;
    }

    private void pause(long milliseconds) {
        try {
            wait(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new NetLoggerException("interrupted");
        }
    }

    @Override
    public synchronized LogRecord next() {
        if (!hasNext())
            throw new NoSuchElementException();
        LogRecord record = ahead;
        ahead = null;
        return record;
    }

    /**
     * How many places could not be read as records, and were passed over.
     *
     * @return so far; 0 when it is closed
     */
    public synchronized long malformed() {
        return handle == 0 ? 0 : Native.malformed(handle);
    }

    @Override
    public synchronized void close() {
        Native.closeReader(handle);
        handle = 0;
        ahead = null;
        notifyAll();
    }
}
