package netlogger;

/** A failure, with the library's message. */
public class NetLoggerException extends RuntimeException {
    private static final long serialVersionUID = 1;

    NetLoggerException(String message) {
        super(message);
    }
}
