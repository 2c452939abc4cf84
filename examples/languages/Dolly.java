import netlogger.NetLogger;

/** The example dolly of README.md in Java: java -cp netlogger.jar Dolly.java */
public class Dolly {
    public static void main(String[] args) {
        int sz = 49332;
        NetLogger eventLog = new NetLogger("testprog");
        eventLog.open(args.length > 0 ? args[0] : "dolly.lbl.gov", args.length > 1 ? Integer.parseInt(args[1]) : 14830);
        eventLog.write("WriteData", "SEND.SZ=" + sz);
        eventLog.close();
    }
}
