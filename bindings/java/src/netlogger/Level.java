package netlogger;

/** The levels of ULM, from the most urgent to the least urgent. */
public enum Level {
    /** The whole system is unusable. */
    EMERGENCY,
    /** An operator must act immediately. */
    ALERT,
    /** An operation failed. */
    ERROR,
    /** An operation may fail soon. */
    WARNING,
    /** Authentication. */
    AUTH,
    /** An attempt to do something without permission. */
    SECURITY,
    /** Normal operation of the program. This is the default level. */
    USAGE,
    /** An action of the system. */
    SYSTEM,
    /** An event that should be archived. */
    IMPORTANT,
    /** Information for developers. */
    DEBUG;

    private static final Level[] ALL = values();

    /** Returns the library's number of the level. */
    int number() {
        return ordinal() + 1;
    }

    /** Returns the level with the library's number, or null for an invalid number. */
    static Level of(int number) {
        return number >= 1 && number <= ALL.length ? ALL[number - 1] : null;
    }
}
