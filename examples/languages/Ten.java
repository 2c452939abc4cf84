import netlogger.Event;
import netlogger.Level;
import netlogger.NetLogger;

/** The ten events of README.md in Java: java -cp netlogger.jar Ten.java URL */
public class Ten {
    public static void main(String[] args) {
        try (NetLogger log = new NetLogger("ten")) {
            log.open(args[0]);
            log.event("Ten.Integers").put("ZERO", 0).put("NEGATIVE", -49332).put("LEAST", Long.MIN_VALUE)
                .put("MOST", Long.MAX_VALUE).write();
            log.event("Ten.Reals").put("TENTH", 0.1).put("LARGE", -1.5e300).put("NAN", Double.NaN)
                .put("INFINITE", Double.POSITIVE_INFINITY).put("NEGATIVE", Double.NEGATIVE_INFINITY).write();
            log.event(Level.DEBUG, "Ten.Truth").put("YES", true).put("NO", false).write();
            log.event(Level.WARNING, "Ten.Quotes").put("TEXT", "say \"hello\", \\ and 'goodbye' A=1").write();
            log.event(Level.ERROR, "Ten.Lines").put("TEXT", "one\ntwo\tthree\r\n").write();
            log.event(Level.IMPORTANT, "Ten.Utf8").put("TEXT", "Gr\u00fc\u00dfe, \u4e16\u754c \ud83c\udf0d").write();
            log.event(Level.SYSTEM, "Ten.Empty").put("TEXT", "").write();
            log.event("Ten.Huge").put("TEXT", "0123456789".repeat(10000)).put("AFTER", 1).write();
            log.event(Level.ALERT, "Ten.Nothing").write();
            Event many = log.event("Ten.Many");
            for (int i = 1; i <= 16; i++)
                many.put(String.format("F%02d", i), i);
            many.write();
        }
    }
}
