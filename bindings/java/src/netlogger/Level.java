package netlogger;

/** What kind of event it is, from the most to the least urgent: the levels of ULM. */
public enum Level {
    EMERGENCY, ALERT, ERROR, WARNING, AUTH, SECURITY, USAGE, SYSTEM, IMPORTANT, DEBUG;

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
