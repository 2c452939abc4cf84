package netlogger;

import java.util.function.Consumer;

/**
 * A log: a stream of events from this program to one destination.
 *
 * <p>Logging never throws and waits for nobody (unless the log's policy says so, when its ring is full): an event that could
 * not be kept is counted, and the log itself says how many were lost. What can fail, opening, flushing and closing,
 * throws {@link NetLoggerException}. Any number of threads may use a log. A log that was not opened, or is closed, takes
 * everything and writes nothing.
 */
public final class NetLogger implements AutoCloseable {
    private final String prog;
    private final long handle = Native.newLog();
    private volatile boolean isOpen;

    /**
     * A log, which is to be opened.
     *
     * @param prog the program's name in every record
     */
    public NetLogger(String prog) {
        this.prog = prog;
    }

    /**
     * Opens it: to a collector.
     *
     * @param host its host, by name or address
     * @param port its port, usually 14830
     * @throws NetLoggerException when it cannot be opened
     */
    public void open(String host, int port) {
        open("x-netlog://" + (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port);
    }

    /**
     * Opens it: to a destination.
     *
     * @param url such as file:///tmp/a.log or x-netlog://HOST?format=nlb
     * @throws NetLoggerException when it cannot be opened
     */
    public void open(String url) {
        open(Native.bytes(url));
    }

    /**
     * Opens it: to where the environment variable NETLOGGER_DEST says. Nowhere, without a word, when it is not set.
     *
     * @throws NetLoggerException when it cannot be opened
     */
    public void open() {
        open((byte[]) null);
    }

    private synchronized void open(byte[] url) {
        close();
        isOpen = Native.open(handle, Native.bytes(prog), url);
    }

    /**
     * Whether it is open.
     *
     * @return false too when logging is switched off
     */
    public boolean isOpen() {
        return isOpen;
    }

    /**
     * Whether events of a level are written.
     *
     * @param level the level
     * @return whether they are
     */
    public boolean isOn(Level level) {
        return Native.isOn(handle, level.number());
    }

    /**
     * Writes an event of level Usage. fields is a row of NAME=value, as ULM has it; words that belong to no field become
     * the field MSG. Of "LVL=Error" in it the level is taken.
     *
     * @param event the event's name
     * @param fields such as "SEND.SZ=49332 FILE=\"a b\""
     * @return false when it is off, or lost: then it is counted
     */
    public boolean write(String event, String fields) {
        return Native.writeText(handle, Native.bytes(event), Native.bytes(fields)) > 0;
    }

    /**
     * Begins an event of level Usage.
     *
     * @param name the event's name, best a constant
     * @return to be given fields, and to be written
     */
    public Event event(String name) {
        return Event.begin(isOpen ? handle : 0, Level.USAGE, name);
    }

    /**
     * Begins an event.
     *
     * @param level its level
     * @param name the event's name, best a constant
     * @return to be given fields, and to be written
     */
    public Event event(Level level, String name) {
        return Event.begin(isOpen ? handle : 0, level, name);
    }

    /**
     * Begins a span: name.start when it is started, and name.end when it is closed, with the same fields.
     *
     * @param name what both events' names begin with
     * @return to be given fields, started, and closed
     */
    public Span span(String name) {
        return new Span(this, name);
    }

    /**
     * Events of levels after this one are not written.
     *
     * @param level the last one that is written
     */
    public void setLevel(Level level) {
        Native.setLevel(handle, level.number());
    }

    /**
     * Does what the lines of commands say, such as "event Read* off"; the library's log.h lists them.
     *
     * @param commands a command a line
     * @throws NetLoggerException when one cannot be done
     */
    public void control(String commands) {
        if (!Native.control(handle, Native.bytes(commands)))
            throw Native.failure();
    }

    /**
     * Sends what was written so far, and waits for that.
     *
     * @throws NetLoggerException when not all of it could be sent; it is kept
     */
    public void flush() {
        if (!Native.flush(handle))
            throw Native.failure();
    }

    /**
     * Flushes and closes the log. If not all events can be delivered, the library prints how many remain, and where; call
     * flush() before to find out. Events of other threads at the same time are in the log if their call returned true.
     */
    @Override
    public synchronized void close() {
        isOpen = false;
        Native.close(handle);
    }

    /** The time between two events, name.start and name.end, that have the same fields. */
    public static final class Span implements AutoCloseable {
        private final NetLogger log;
        private final String name;
        private Consumer<Event> fields = event -> { };
        private boolean failed, ended;

        Span(NetLogger log, String name) {
            this.log = log;
            this.name = name;
        }

        private Span add(Consumer<Event> field) {
            fields = fields.andThen(field);
            return this;
        }

        /**
         * Adds a whole number.
         *
         * @param field the field's name
         * @param value its value
         * @return this span
         */
        public Span put(String field, long value) {
            return add(event -> event.put(field, value));
        }

        /**
         * Adds a real number.
         *
         * @param field the field's name
         * @param value its value
         * @return this span
         */
        public Span put(String field, double value) {
            return add(event -> event.put(field, value));
        }

        /**
         * Adds true or false.
         *
         * @param field the field's name
         * @param value its value
         * @return this span
         */
        public Span put(String field, boolean value) {
            return add(event -> event.put(field, value));
        }

        /**
         * Adds a text.
         *
         * @param field the field's name
         * @param value its value; null is the text "null"
         * @return this span
         */
        public Span put(String field, CharSequence value) {
            String kept = String.valueOf(value);
            return add(event -> event.put(field, kept));
        }

        /**
         * Writes name.start, with the fields so far. What is put later is in name.end only.
         *
         * @return this span
         */
        public Span start() {
            Event event = log.event(name + ".start");
            fields.accept(event);
            event.write();
            return this;
        }

        /** The end will say STATUS=-1 instead of 0. */
        public void fail() {
            failed = true;
        }

        /** Writes name.end, once. */
        @Override
        public void close() {
            if (ended)
                return;
            ended = true;
            Event event = log.event(name + ".end");
            fields.accept(event);
            event.put("STATUS", failed ? -1 : 0).write();
        }
    }
}
