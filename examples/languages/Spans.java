import netlogger.NetLogger;

/** The spans of README.md in Java: java -cp netlogger.jar Spans.java URL */
public class Spans {
    public static void main(String[] args) {
        try (NetLogger log = new NetLogger("spans")) {
            log.open(args[0]);
            try (NetLogger.Span request = log.span("Request").put("ID", 7).start()) {
                try (NetLogger.Span query = log.span("Query").put("SQL", "SELECT 1").start()) {
                    log.event("Row").put("N", 1).write();
                    query.setStatus(3);
                }
                NetLogger.Span copy = log.span("Copy").begin();
                copy.put("BYTES", 700).close();
                log.event("Reply").write();
            }
            log.event("Idle").write();
        }
    }
}
