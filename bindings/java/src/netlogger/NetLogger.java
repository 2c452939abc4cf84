package netlogger;

import java.util.function.Consumer;

/**
 * A log: a stream of events from this program to one destination.
 *
 * <p>Logging never throws an exception because of the destination or of values; invalid calls, such as an event with an
 * empty name, throw an exception. Logging waits only if the thread's ring is full and the log's policy requires a wait.
 * The log counts and reports lost events. A collector that is not running is not an error: the library keeps the events,
 * prints one line on standard error, and tries again. Invalid destinations, and events that flush() cannot send, cause a
 * {@link NetLoggerException}. Any number of threads may use a log. A log that is not open accepts all calls and writes
 * nothing.
 */
public final class NetLogger implements AutoCloseable {
    private final String prog;
    private final long handle = Native.newLog();
    private volatile boolean isOpen;

    /**
     * Creates a log that is not open.
     *
     * @param prog the program's name in every record
     */
    public NetLogger(String prog) {
        this.prog = prog;
    }

    /**
     * Opens the log to a collector.
     *
     * @param host the host, by name or address
     * @param port the port, usually 14830
     * @throws NetLoggerException if the destination is invalid
     */
    public void open(String host, int port) {
        open("x-netlog://" + (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port);
    }

    /**
     * Opens the log to a destination.
     *
     * @param url such as file:///tmp/a.log or x-netlog://HOST
     * @throws NetLoggerException if the destination is invalid
     */
    public void open(String url) {
        open(Native.bytes(url));
    }

    /**
     * Opens the log to the destination in the environment variable NETLOGGER_DEST. If the variable is not set, the log is off.
     *
     * @throws NetLoggerException if the destination is invalid
     */
    public void open() {
        open((byte[]) null);
    }

    private synchronized void open(byte[] url) {
        close();
        isOpen = Native.open(handle, Native.bytes(prog), url);
    }

    /**
     * Returns whether the log is open.
     *
     * @return true if the log is open; false if it is not open, or if logging is off
     */
    public boolean isOpen() {
        return isOpen;
    }

    /**
     * Returns whether events of a level are written.
     *
     * @param level the level
     * @return true if events of the level are written
     */
    public boolean isOn(Level level) {
        return Native.isOn(handle, level.number());
    }

    /**
     * Writes an event of level Usage. fields has the form NAME=value of ULM; other words become the field MSG. LVL=Error
     * in the fields sets the level.
     *
     * @param event the event's name
     * @param fields such as "SEND.SZ=49332 FILE=\"a b\""
     * @return false if the event is off or lost
     */
    public boolean write(String event, String fields) {
        return Native.writeText(handle, Native.bytes(event), Native.bytes(fields)) > 0;
    }

    /**
     * Begins an event of level Usage.
     *
     * @param name the event's name, preferably a constant
     * @return an event, to which fields are added before it is written
     * @throws IllegalArgumentException if name is empty
     */
    public Event event(String name) {
        return Event.begin(isOpen ? handle : 0, Level.USAGE, name);
    }

    /**
     * Begins an event.
     *
     * @param level its level
     * @param name the event's name, preferably a constant
     * @return an event, to which fields are added before it is written
     * @throws IllegalArgumentException if name is empty
     */
    public Event event(Level level, String name) {
        return Event.begin(isOpen ? handle : 0, level, name);
    }

    /**
     * Creates a span of level Usage, which writes name.start when it is started and name.end when it is closed.
     *
     * @param name the beginning of both names
     * @return a span, to which fields are added before it is started
     */
    public Span span(String name) {
        return span(Level.USAGE, name);
    }

    /**
     * Creates a span.
     *
     * @param level its level
     * @param name the beginning of both names
     * @return a span, to which fields are added before it is started
     */
    public Span span(Level level, String name) {
        return new Span(this, level, name);
    }

    /**
     * Sets the threshold: the log drops less urgent events.
     *
     * @param level the least urgent level that is written
     */
    public void setLevel(Level level) {
        Native.setLevel(handle, level.number());
    }

    /**
     * Executes commands such as "event Read* off"; see nl_control.
     *
     * @param commands one command per line
     * @throws NetLoggerException if a command is invalid
     */
    public void control(String commands) {
        if (!Native.control(handle, Native.bytes(commands)))
            throw Native.failure();
    }

    /**
     * Sends all events and waits until they are sent.
     *
     * @throws NetLoggerException if some events could not be sent; the log keeps these events
     */
    public void flush() {
        if (!Native.flush(handle))
            throw Native.failure();
    }

    /**
     * Flushes and closes the log. If not all events can be delivered, the library prints how many remain, and where.
     * Call flush() before close() to detect undelivered events. If another thread writes an event at the same time, the
     * event is in the log if the call that wrote the event returned true.
     */
    @Override
    public synchronized void close() {
        isOpen = false;
        Native.close(handle);
    }

    /**
     * A span of a request: the events name.start and name.end, which have the IDs of the trace, the span and its
     * parent. name.start has the fields that were added before start() or begin(). name.end has STATUS and the fields
     * that were added later.
     *
     * <p>From start() to close(), which the same thread must call, the span is the thread's current context: the thread's
     * events carry the ID of the span. A virtual thread must use begin() instead.
     */
    public static final class Span implements AutoCloseable {
        private static final Consumer<Event> NOTHING = event -> { };

        private final NetLogger log;
        private final Level level;
        private final String name;
        private Consumer<Event> fields = NOTHING;
        private Context context = new Context();
        private Context.Attached attached;
        private byte[] state; // null: not begun, off or ended
        private boolean hasParent;
        private int status;

        Span(NetLogger log, Level level, String name) {
            this.log = log;
            this.level = level;
            this.name = name;
        }

        private Span add(Consumer<Event> field) {
            fields = fields.andThen(field);
            return this;
        }

        /**
         * Adds an integer.
         *
         * @param field the name of the field
         * @param value the value
         * @return this span
         */
        public Span put(String field, long value) {
            return add(event -> event.put(field, value));
        }

        /**
         * Adds a floating-point number.
         *
         * @param field the name of the field
         * @param value the value
         * @return this span
         */
        public Span put(String field, double value) {
            return add(event -> event.put(field, value));
        }

        /**
         * Adds a boolean.
         *
         * @param field the name of the field
         * @param value the value
         * @return this span
         */
        public Span put(String field, boolean value) {
            return add(event -> event.put(field, value));
        }

        /**
         * Adds text.
         *
         * @param field the name of the field
         * @param value the value; null becomes the text "null"
         * @return this span
         */
        public Span put(String field, CharSequence value) {
            String kept = String.valueOf(value);
            return add(event -> event.put(field, kept));
        }

        /**
         * Sets the parent, instead of the thread's current context.
         *
         * @param parent the context of the parent; an empty context begins a trace
         * @return this span
         */
        public Span parent(Context parent) {
            context = parent;
            hasParent = true;
            return this;
        }

        /**
         * Writes name.start, and makes the span the thread's current context until it is closed.
         *
         * @return this span
         */
        public Span start() {
            begin();
            if (state != null)
                attached = context.attach();
            return this;
        }

        /**
         * Writes name.start. The span is not the current context, and any thread may close it.
         *
         * @return this span
         */
        public Span begin() {
            byte[] parent = (hasParent ? context : Context.current()).bytes();
            Event event = Event.begin(log.isOpen ? log.handle : 0, level, name);
            fields.accept(event);
            fields = NOTHING;
            byte[] begun = event.beginSpan(parent);
            context = new Context(begun);
            state = begun.length > Context.SIZE ? begun : null;
            return this;
        }

        /**
         * Returns the context for child spans and requests. If the span is off, this is the parent's context.
         *
         * @return the context of the span
         */
        public Context context() {
            return context;
        }

        /**
         * Sets STATUS of name.end. The default is 0.
         *
         * @param status the status; 0 is success
         */
        public void setStatus(int status) {
            this.status = status;
        }

        /** Sets STATUS of name.end to -1. */
        public void fail() {
            status = -1;
        }

        /** Writes name.end, once. */
        @Override
        public void close() {
            if (attached != null)
                attached.close();
            attached = null;
            byte[] ended = state;
            state = null;
            if (ended == null)
                return;
            Event event = Event.begin(log.isOpen ? log.handle : 0, level, name);
            fields.accept(event);
            event.endSpan(ended, status);
        }
    }
}
