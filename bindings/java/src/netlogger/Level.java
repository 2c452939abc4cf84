package netlogger;

/** What kind of event it is, from the most to the least urgent: the levels of ULM. */
public enum Level {
    /** The whole does not work. */
    EMERGENCY,
    /** Somebody has to act now. */
    ALERT,
    /** Something did not work. */
    ERROR,
    /** Something may not work soon. */
    WARNING,
    /** Who is who. */
    AUTH,
    /** What somebody tried who may not. */
    SECURITY,
    /** What the program does: the level of events that name none. */
    USAGE,
    /** What the system did. */
    SYSTEM,
    /** What ought to be kept. */
    IMPORTANT,
    /** What only its developers want. */
    DEBUG;

    private static final Level[] ALL = values();

    /** As the library counts them. */
    int number() {
        return ordinal() + 1;
    }

    /** Of the library's number; null when that is none of a level. */
    static Level of(int number) {
        return number >= 1 && number <= ALL.length ? ALL[number - 1] : null;
    }
}
