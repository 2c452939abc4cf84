/**
 * NetLogger: timestamped events from every part of a distributed program, over libnetlogger.
 *
 * <pre>{@code
 * NetLogger log = new NetLogger("testprog");
 * log.open("dolly.lbl.gov", 14830);
 * log.write("WriteData", "SEND.SZ=" + sz);                  // as text
 * log.event("WriteData").put("SEND.SZ", sz).put("FILE", name).write(); // typed: allocates and formats nothing
 * try (NetLogger.Span span = log.span("Read").put("BLOCK.ID", id).start()) { ... } // Read.start, Read.end
 * log.close();
 * }</pre>
 *
 * {@link netlogger.Reader} reads logs. {@link netlogger.NetLogHandler} accepts the records of java.util.logging, and
 * {@link netlogger.TextLogger} has the methods of SLF4J's loggers.
 */
package netlogger;
