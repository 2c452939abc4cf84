import java.util.Arrays;
import netlogger.NetLogger;

/** Measures the cost of an event with three fields in Java: java -cp netlogger.jar Events.java EVENTS PATH. Prints the time per call in bursts, and without a pause. */
public class Events {
    static final int BURST = 4096, BURSTS = 31;
    static final double SECONDS = 0.25;
    static final String[] FILES = new String[64];
    static long sum; // makes the empty loop do something

    static void events(NetLogger log, int n) {
        for (int i = 0; i < n; i++)
            log.event("WriteData").put("SEND.SZ", i).put("FILE", FILES[i & 63]).put("SECONDS", SECONDS).write();
    }

    static void empty(int n) {
        for (int i = 0; i < n; i++)
            sum += i + FILES[i & 63].length();
    }

    static double each(NetLogger log, int n) {
        long begin = System.nanoTime();
        events(log, n);
        long middle = System.nanoTime();
        empty(n);
        return (2.0 * middle - begin - System.nanoTime()) / n;
    }

    static double bursts(NetLogger log) throws InterruptedException {
        double[] each = new double[BURSTS];
        for (int i = 0; i < BURSTS; i++) {
            each[i] = each(log, BURST);
            Thread.sleep(10);
        }
        Arrays.sort(each);
        return each[BURSTS / 2];
    }

    public static void main(String[] args) throws InterruptedException {
        int n = Integer.parseInt(args[0]);
        for (int i = 0; i < FILES.length; i++)
            FILES[i] = "/data/run-17/block-00" + (10 + i % 64);
        NetLogger log = new NetLogger("prog");
        log.open("file://" + args[1] + "?format=nlb&policy=block");
        for (int i = 0; i < 300; i++) // compile everything, and touch every page of the ring
            each(log, BURST);
        log.flush();
        double burst = bursts(log);
        System.out.println(burst + " " + each(log, n));
        log.close();
    }
}
