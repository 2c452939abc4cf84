package netlogger;

import java.util.Arrays;

/**
 * A trace and a span in it (W3C Trace Context). Contexts are immutable. Pass a context to other threads, and its traceparent
 * to other processes.
 */
public final class Context {
    static final int SIZE = 32;

    private final byte[] bytes; // an nl_context

    /** Creates the empty context. A span whose parent is empty begins a trace. */
    public Context() {
        bytes = new byte[SIZE];
    }

    /** Makes the context from the beginning of the bytes. */
    Context(byte[] bytes) {
        this.bytes = Arrays.copyOf(bytes, SIZE);
    }

    /**
     * Returns the current context of the calling thread.
     *
     * @return the context, which may be empty
     */
    public static Context current() {
        return new Context(Native.currentContext());
    }

    /**
     * Reads the traceparent header of a request.
     *
     * @param traceparent the value of the header; null if the request has none
     * @return the context; empty if the header is invalid
     */
    public static Context parse(String traceparent) {
        return traceparent == null ? new Context() : new Context(Native.parseTraceparent(Native.bytes(traceparent)));
    }

    /**
     * Reads the environment variable TRACEPARENT, which a program inherits from its parent process.
     *
     * @return the context; empty if the variable is missing or invalid
     */
    public static Context fromEnvironment() {
        return new Context(Native.parseTraceparent(null));
    }

    /**
     * Joins the values of tracestate headers.
     *
     * @param headers the values in their order
     * @return the value to pass on; "" if one of them is invalid
     */
    public static String joinTracestate(String... headers) {
        byte[][] texts = new byte[headers.length][];
        for (int i = 0; i < headers.length; i++)
            texts[i] = Native.bytes(headers[i]);
        return Native.text(Native.joinTracestate(texts));
    }

    /**
     * Returns the traceparent header for requests, which is also the value of TRACEPARENT for programs to start.
     *
     * @return the header; "" if the context is empty
     */
    public String traceparent() {
        return Native.text(Native.formatTraceparent(bytes));
    }

    /**
     * Returns whether the context names no trace.
     *
     * @return true if it is empty
     */
    public boolean isEmpty() {
        return Arrays.equals(bytes, new byte[SIZE]);
    }

    /**
     * Makes this the current context of the calling thread until the result is closed. The same thread must close the
     * result.
     *
     * @return an object for try-with-resources
     */
    public Attached attach() {
        return new Attached(Native.attachContext(bytes));
    }

    byte[] bytes() {
        return bytes;
    }

    /** An attached context. */
    public static final class Attached implements AutoCloseable {
        private final byte[] previous;

        Attached(byte[] previous) {
            this.previous = previous;
        }

        /** Attaches the previous context again. */
        @Override
        public void close() {
            Native.attachContext(previous);
        }
    }
}
