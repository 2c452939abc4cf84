package netlogger;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;

/**
 * An event under construction: {@link NetLogger#event} begins it, and {@link #write} writes and ends it. An event belongs to the
 * thread that began it. After write, the thread reuses the object for other events, so do not keep a reference to the object.
 * Code that computes the value of a field may log other events.
 *
 * <p>After the first event of a kind (level, name, names of fields) in a thread, events of this kind allocate nothing. This
 * applies to the first 4096 kinds of a process; further kinds cost more.
 *
 * <p>An event has at most 16 fields. Names consist of letters, digits, '.', '_' and '-'; constant names are fastest.
 * Text is written in UTF-8.
 */
public final class Event {
    /* The layout of nl_field: name (unused), type, value of up to 16 bytes. bindings/java/netlogger_jni.c checks it. */
    private static final int FIELD_SIZE = 40, TYPE_AT = 16, VALUE_AT = 24, SIZE_AT = 32;
    private static final int STRING = 0, INT = 1, DOUBLE = 3, BOOL = 4;
    private static final int FIELDS_MAX = 16, TEXTS_AT = FIELDS_MAX * FIELD_SIZE, TEXTS_SIZE_FIRST = 16384;
    private static final int CACHE_SIZE = 512, KINDS_MAX = 4096, EVENTS = 4;

    /** The level, the event's name and the names of its fields. */
    private static final class Kind {
        final int level;
        final String event;
        final String[] names;
        final int hash;
        long handle;

        Kind(int level, String event, String[] names, int hash) {
            this.level = level;
            this.event = event;
            this.names = names;
            this.hash = hash;
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Kind && ((Kind) other).is(level, event, names, names.length);
        }

        boolean is(int otherLevel, String otherEvent, String[] otherNames, int count) {
            if (level != otherLevel || count != names.length || !same(event, otherEvent))
                return false;
            for (int i = 0; i < count; i++)
                if (!same(names[i], otherNames[i]))
                    return false;
            return true;
        }

        /* Names are usually constants, so equal names are usually the same object. */
        private static boolean same(String a, String b) {
            return a == b || a.equals(b);
        }

        Kind made() {
            byte[][] bytes = new byte[names.length][];
            for (int i = 0; i < names.length; i++)
                bytes[i] = Native.bytes(names[i]);
            handle = Native.newKind(level, Native.bytes(event), bytes);
            return this;
        }
    }

    /* The kinds of the process, which are never freed. */
    private static final ConcurrentHashMap<Kind, Kind> KINDS = new ConcurrentHashMap<>();
    private static final ThreadLocal<Own> OWN = ThreadLocal.withInitial(Own::new);

    /** The state of a thread: some events for reuse, and the kinds that the thread used last. */
    private static final class Own {
        final Kind[] cache = new Kind[CACHE_SIZE];
        final Event[] events = new Event[EVENTS];
        int at; // index of the event that was begun last

        Own() {
            events[0] = new Event(this);
        }

        /* Returns an event that is not open. If all are open, replaces an event that was begun but never written. */
        Event another() {
            for (int i = 0; i < EVENTS; i++)
                if (events[i] != null && !events[i].isOpen)
                    return events[at = i];
            at = (at + 1) % EVENTS;
            return events[at] = new Event(this);
        }
    }

    private final Own own;
    private final String[] names = new String[FIELDS_MAX];
    private ByteBuffer buffer;
    private long address;
    private long log;
    private int level, count, end;
    private boolean isOpen; // the event is not written yet
    private String event;

    private Event(Own own) {
        this.own = own;
        grow(TEXTS_AT + TEXTS_SIZE_FIRST);
    }

    static Event begin(long log, Level level, String event) {
        if (event.isEmpty())
            throw new IllegalArgumentException("the name of an event must not be empty");
        Own own = OWN.get();
        Event begun = own.events[own.at];
        if (begun.isOpen)
            begun = own.another();
        begun.log = log;
        begun.level = level.number();
        if (begun.event != event) // here and below: storing a reference has a cost in the garbage collector
            begun.event = event;
        begun.count = 0;
        begun.end = TEXTS_AT;
        begun.isOpen = true;
        return begun;
    }

    private void grow(int size) {
        ByteBuffer larger = ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
        long at = Native.addressOf(larger);
        if (buffer != null) {
            buffer.limit(end).position(0);
            larger.put(buffer).clear();
            for (int i = 0; i < count; i++) // texts have moved
                if (larger.getInt(i * FIELD_SIZE + TYPE_AT) == STRING)
                    larger.putLong(i * FIELD_SIZE + VALUE_AT, larger.getLong(i * FIELD_SIZE + VALUE_AT) - address + at);
        }
        buffer = larger;
        address = at;
    }

    private int add(String name, int type) {
        if (!isOpen)
            throw new IllegalStateException("the event is already written");
        if (count == FIELDS_MAX)
            throw new IllegalArgumentException("an event has at most 16 fields");
        if (name.isEmpty())
            throw new IllegalArgumentException("the name of a field must not be empty");
        if (names[count] != name)
            names[count] = name;
        int at = count++ * FIELD_SIZE;
        buffer.putInt(at + TYPE_AT, type);
        return at;
    }

    /**
     * Adds an integer.
     *
     * @param name the field's name, preferably a constant
     * @param value its value
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, long value) {
        buffer.putLong(add(name, INT) + VALUE_AT, value);
        return this;
    }

    /**
     * Adds a floating-point number, which may be NaN or infinite.
     *
     * @param name the field's name, preferably a constant
     * @param value its value
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, double value) {
        buffer.putDouble(add(name, DOUBLE) + VALUE_AT, value);
        return this;
    }

    /**
     * Adds a floating-point number with the fewest digits that identify it: 0.1f is written as 0.1.
     *
     * @param name the field's name, preferably a constant
     * @param value its value
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, float value) {
        double wide = value;
        return put(name, value == (int) value || Float.isNaN(value) ? wide : Double.parseDouble(Float.toString(value)));
    }

    /**
     * Adds a boolean.
     *
     * @param name the field's name, preferably a constant
     * @param value its value
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, boolean value) {
        buffer.putLong(add(name, BOOL) + VALUE_AT, value ? 1 : 0);
        return this;
    }

    /**
     * Adds text, in UTF-8; half of a surrogate pair becomes a question mark.
     *
     * @param name the field's name, preferably a constant
     * @param value the text; null is the text "null"
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, String value) {
        if (value == null)
            value = "null";
        int length = value.length();
        int at = add(name, STRING), start = reserve(3L * length), all = 0;
        final ByteBuffer to = buffer;
        for (int i = 0; i < length; i++) { // without a branch, because nearly all texts are ASCII
            char c = value.charAt(i);
            all |= c;
            to.put(start + i, (byte) c);
        }
        return setText(at, start, all < 0x80 ? start + length : encode(value, start));
    }

    /**
     * Adds text, in UTF-8; half of a surrogate pair becomes a question mark.
     *
     * @param name the field's name, preferably a constant
     * @param value the text; null is the text "null"
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, CharSequence value) {
        if (value instanceof String)
            return put(name, (String) value);
        if (value == null)
            return put(name, "null");
        int at = add(name, STRING), start = reserve(3L * value.length());
        return setText(at, start, encode(value, start));
    }

    /* Writes UTF-8 from start on. Returns its end. */
    private int encode(CharSequence value, int start) {
        int length = value.length(), to = start;
        for (int i = 0; i < length; i++) {
            char c = value.charAt(i);
            if (c < 0x80)
                buffer.put(to++, (byte) c);
            else
                to = putWide(to, c, value, i);
        }
        return to;
    }

    /**
     * Adds arbitrary bytes, as text.
     *
     * @param name the field's name, preferably a constant
     * @param value the bytes, which are copied
     * @return this event
     * @throws IllegalStateException if the event is already written
     * @throws IllegalArgumentException if name is empty or the event has 16 fields
     */
    public Event put(String name, byte[] value) {
        int at = add(name, STRING), start = reserve((long) value.length);
        buffer.position(start);
        buffer.put(value).position(0);
        return setText(at, start, start + value.length);
    }

    /** Reserves space for more bytes of text. Returns its position. */
    private int reserve(long size) {
        if (size > buffer.capacity() - end)
            grow(Math.max(Math.toIntExact(end + size), (int) Math.min(2L * buffer.capacity(), Integer.MAX_VALUE - 8)));
        return end;
    }

    private Event setText(int at, int start, int to) {
        buffer.putLong(at + VALUE_AT, address + start);
        buffer.putLong(at + SIZE_AT, to - start);
        end = to;
        return this;
    }

    /* Writes a character as UTF-8. Half of a surrogate pair becomes a question mark, as in String.getBytes. */
    private int putWide(int to, char c, CharSequence value, int i) {
        if (c < 0x800) {
            buffer.put(to, (byte) (0xc0 | c >> 6));
            buffer.put(to + 1, (byte) (0x80 | c & 0x3f));
            return to + 2;
        }
        if (!Character.isSurrogate(c)) {
            buffer.put(to, (byte) (0xe0 | c >> 12));
            buffer.put(to + 1, (byte) (0x80 | c >> 6 & 0x3f));
            buffer.put(to + 2, (byte) (0x80 | c & 0x3f));
            return to + 3;
        }
        if (Character.isLowSurrogate(c) && i > 0 && Character.isHighSurrogate(value.charAt(i - 1)))
            return to; // written with the first half
        if (Character.isLowSurrogate(c) || i + 1 == value.length() || !Character.isLowSurrogate(value.charAt(i + 1))) {
            buffer.put(to, (byte) '?');
            return to + 1;
        }
        int point = Character.toCodePoint(c, value.charAt(i + 1));
        buffer.put(to, (byte) (0xf0 | point >> 18));
        buffer.put(to + 1, (byte) (0x80 | point >> 12 & 0x3f));
        buffer.put(to + 2, (byte) (0x80 | point >> 6 & 0x3f));
        buffer.put(to + 3, (byte) (0x80 | point & 0x3f));
        return to + 4;
    }

    /**
     * Writes the event. Do not use the event afterwards.
     *
     * @return false if the event is off or lost
     * @throws IllegalStateException if the event is already written
     */
    public boolean write() {
        if (!isOpen)
            throw new IllegalStateException("the event is already written");
        boolean written = log != 0 && put();
        isOpen = false; // the program may reuse this object
        return written;
    }

    private byte[][] nameBytes() {
        byte[][] bytes = new byte[count][];
        for (int i = 0; i < count; i++)
            bytes[i] = Native.bytes(names[i]);
        return bytes;
    }

    /** Begins a span with the name and the fields of this event. Returns its state, see Native.beginSpan. */
    byte[] beginSpan(byte[] parent) {
        isOpen = false;
        return log == 0 ? parent : Native.beginSpan(log, level, Native.bytes(event + '\0'), parent, nameBytes(), address);
    }

    /** Ends a span with the fields of this event. */
    void endSpan(byte[] state, int status) {
        isOpen = false;
        if (log != 0)
            Native.endSpan(log, state, Native.bytes(event + '\0'), status, nameBytes(), address);
    }

    private boolean put() {
        int hash = 31 * event.hashCode() + level;
        for (int i = 0; i < count; i++)
            hash = 31 * hash + names[i].hashCode();
        int place = (hash ^ hash >>> 16) & CACHE_SIZE - 1;
        Kind kind = own.cache[place];
        if (kind == null || kind.hash != hash || !kind.is(level, event, names, count))
            kind = find(hash, place);
        int result = Native.writeEvent(log, kind.handle, address);
        if (own.cache[place] != kind)
            Native.freeKind(kind.handle);
        return result > 0;
    }

    /*
     * Returns the shared kind of the event, and caches the kind in this thread. If the process shares no further kinds,
     * returns a kind for this event only.
     */
    private Kind find(int hash, int place) {
        Kind wanted = new Kind(level, event, Arrays.copyOf(names, count), hash);
        Kind kind = KINDS.get(wanted);
        if (kind == null && KINDS.size() >= KINDS_MAX)
            return wanted.made();
        if (kind == null)
            kind = KINDS.computeIfAbsent(wanted, Kind::made);
        return own.cache[place] = kind;
    }
}
