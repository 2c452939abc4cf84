package netlogger;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The records of a source, in order. A program can iterate over them once. A source is a file, "-" for standard input,
 * or a collector (x-netlog://HOST), in any format of the library. The methods are synchronized.
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
     * Opens a source to read all its records.
     *
     * @param source a file, "-", or x-netlog://HOST
     * @throws NetLoggerException if the source cannot be opened
     */
    public Reader(String source) {
        this(source, null, false);
    }

    /**
     * Opens a source.
     *
     * @param source a file, "-", or x-netlog://HOST
     * @param where an expression that selects records; null: all
     * @throws NetLoggerException if the source cannot be opened or the expression is invalid
     */
    public Reader(String source, String where) {
        this(source, where, false);
    }

    /**
     * Opens a source.
     *
     * @param source a file, "-", or x-netlog://HOST
     * @param where an expression that selects records; null: all
     * @param follow whether to wait for more records at the end of a file
     * @throws NetLoggerException if the source cannot be opened or the expression is invalid
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
     * Returns whether there is another record. Waits if the source has no end. To end the wait, another thread may close
     * the reader, which ends the input, or interrupt this thread.
     *
     * @throws NetLoggerException if reading fails, or the thread is interrupted
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
     * Returns the number of malformed parts of the input that were skipped.
     *
     * @return the number so far; 0 after closing
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
