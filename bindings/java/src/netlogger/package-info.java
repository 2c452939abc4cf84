/**
 * NetLogger: timestamped events from every part of a distributed program, over libnetlogger.
 *
 * <pre>{@code
 * NetLogger log = new NetLogger("testprog");
 * log.open("dolly.lbl.gov", 14830);
 * log.write("WriteData", "SEND.SZ=" + sz);                  // text, as it always was
 * log.event("WriteData").put("SEND.SZ", sz).put("FILE", name).write(); // typed: nothing is allocated, nothing formatted
 * try (NetLogger.Span span = log.span("Read").put("BLOCK.ID", id).start()) { ... } // Read.start, Read.end
 * log.close();
 * }</pre>
 *
 * {@link netlogger.Reader} reads logs. {@link netlogger.NetLogHandler} takes what java.util.logging is given, and
 * {@link netlogger.TextLogger} has the calls of SLF4J's loggers.
 */
package netlogger;
