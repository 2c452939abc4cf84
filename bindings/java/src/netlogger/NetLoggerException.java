package netlogger;

/** What could not be done, in the library's words. */
public class NetLoggerException extends RuntimeException {
    private static final long serialVersionUID = 1;

    NetLoggerException(String message) {
        super(message);
    }
}
