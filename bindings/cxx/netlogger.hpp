/**
 * @file
 * NetLogger in C++17, over <netlogger.h>; nothing but this header, and -lnetlogger.
 *
 *   using namespace netlogger::literals;
 *   netlogger::log log("testProg", "x-netlog://dolly.lbl.gov");
 *   log.event("WriteData"_e, "SEND.SZ"_f = size, "FILE"_f = name);
 *   {
 *       auto reading = log.span("Read"_e, "BLOCK.ID"_f = id);    // Read.start now, Read.end at the end of the block
 *       ...
 *   }
 *
 * Names are literals, known when the program is compiled: an event takes what NL_EVENT takes (event.h), to the
 * instruction, and keeps what it promises: no lock, no system call, no allocation. Names that are known only when the
 * program runs, log.event(std::string, ...), go into the ring as whole records.
 *
 * Values are numbers, bool, enumerations, and text: const char *, std::string, std::string_view, which is copied before
 * the call returns. Anything else is a compile error.
 *
 * What fails when a log or reader is opened, flushed, closed or read throws netlogger::error with the library's words.
 * Logging itself never throws: an event that could not be kept is counted, and the log says so (log.h). A destructor
 * does not throw either; call close() to know.
 *
 * Any number of threads may use a log, one at a time a reader. A child goes on with a log after fork().
 */
#ifndef NETLOGGER_HPP
#define NETLOGGER_HPP

#include <netlogger.h>

#include <cstdarg>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#if __cplusplus < 201703L
#error "netlogger.hpp wants C++17"
#endif

/** Logs, spans and readers. */
namespace netlogger
{

/** What could not be done: thrown by all that can fail. */
class error : public std::runtime_error
{
  public:
    /** With the library's words for this thread's latest failure. */
    error() : std::runtime_error(nl_error_message())
    {
    }
    /** With words of one's own. */
    explicit error(const std::string &what) : std::runtime_error(what)
    {
    }
};

/* ---- names, known when the program is compiled ---- */

/** Whether text is a name that a field can have. @param text ends with a NUL */
constexpr bool is_name(const char *text)
{
    bool good = (*text | 0x20) >= 'a' && (*text | 0x20) <= 'z';
    for (good |= *text == '_'; *text != '\0'; text++)
        good &= (*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9') ||
                *text == '.' || *text == '_' || *text == '-';
    return good;
}

/** An event's name, as a type: "WriteData"_e is one. */
template <char... Text> struct event_name {
    /** The name, with a NUL at its end. */
    static constexpr char text[] = {Text..., '\0'};
};

/** A field of a call: its name, and a reference to its value, good until the call returns. */
template <class Name, class Value> struct field {
    /** What is logged; not owned. */
    const Value &value;
};

/** A field's name, as a type: "SEND.SZ"_f is one. */
template <char... Text> struct field_name {
    /** The name, with a NUL at its end. */
    static constexpr char text[] = {Text..., '\0'};

    /** The field with that value, for the call in which it stands. */
    template <class Value> constexpr field<field_name, Value> operator=(const Value &value) const
    {
        return {value};
    }
};

/** What a program uses to write names: using namespace netlogger::literals. */
namespace literals
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wgnu-string-literal-operator-template"
#endif
/** The name of an event. An extension that gcc and clang have in C++17. */
template <class Char, Char... Text> constexpr event_name<Text...> operator""_e()
{
    static_assert(sizeof...(Text) > 0, "an event has a name");
    return {};
}

/** The name of a field: letters, digits, '.', '_' and '-', the first a letter or '_'. */
template <class Char, Char... Text> constexpr field_name<Text...> operator""_f()
{
    static_assert(is_name(field_name<Text...>::text), "a field's name is letters, digits, '.', '_' and '-'");
    return {};
}
#pragma GCC diagnostic pop
} // namespace literals

namespace detail
{

inline nl_string view(std::string_view text)
{
    return nl_bytes(text.data() != nullptr ? text.data() : "", text.size());
}

/* A value as the ring takes it. */
template <class Value> inline auto capture(const Value &value)
{
    if constexpr (std::is_convertible_v<const Value &, std::string_view> && !std::is_pointer_v<std::decay_t<Value>> &&
                  !std::is_null_pointer_v<Value>)
        return nl_private_cut(view(value));
    else if constexpr (std::is_enum_v<Value>)
        return nl_private_capture(static_cast<std::underlying_type_t<Value>>(value));
    else
        return nl_private_capture(value);
}

template <class Value>
inline constexpr unsigned char raw_type = nl_private_type<decltype(capture(std::declval<const Value &>()))>::raw_type;

/* All that never changes of an event; one in the program for each level, name, and names and types of fields. */
template <nl_level Level, class Event, class... Fields> struct site;
template <nl_level Level, class Event, class... Names, class... Values>
struct site<Level, Event, field<Names, Values>...> {
    static_assert(Level >= NL_EMERGENCY && Level <= NL_DEBUG, "not a level of events");
    static_assert(sizeof...(Names) <= NL_FIELDS_MAX, "an event has at most 16 fields");
    static_assert(((raw_type<Values> != NL_RAW_NONE) && ...), "a field has a value of a type that cannot be logged");
    static constexpr const char *names[] = {Names::text..., nullptr};
    static constexpr unsigned char types[] = {raw_type<Values>..., NL_RAW_NONE};
    static inline nl_event_site it = {Event::text, names, types, sizeof...(Names), Level, 0, 0, nullptr};
};

inline bool is_on(nl_log *log, nl_level level)
{
    auto gate = reinterpret_cast<nl_log_gate *>(log);
    return gate != nullptr && int(level) <= __atomic_load_n(&gate->threshold, __ATOMIC_RELAXED);
}

template <class... Captured> inline bool put(nl_log *log, nl_event_site *site, const Captured &...values)
{
    const std::size_t size = sizeof(nl_event_header) + (std::size_t{0} + ... + nl_private_size_of(values));
    nl_ring_producer *ring;
    char *at = nl_private_begin(reinterpret_cast<nl_log_gate *>(log), site, size, &ring);
    if (at == nullptr)
        return false;
    ((at = nl_private_put(at, values)), ...);
    nl_private_commit(ring, size);
    return true;
}

/* ---- the same for names that are not known before ---- */

inline nl_field typed(nl_string value)
{
    nl_field made{};
    made.type = NL_TYPE_STRING;
    made.string = value;
    return made;
}

template <class Number> inline nl_field typed(Number value)
{
    nl_field made{};
    if constexpr (std::is_same_v<Number, bool>)
        made.type = NL_TYPE_BOOL, made.bool_value = value;
    else if constexpr (std::is_floating_point_v<Number>)
        made.type = NL_TYPE_DOUBLE, made.double_value = value;
    else if constexpr (std::is_signed_v<Number>)
        made.type = NL_TYPE_INT, made.int_value = value;
    else
        made.type = NL_TYPE_UINT, made.uint_value = value;
    return made;
}

/* Text as long as it is: what goes into the ring as a record is cut there, and later. */
template <class Value> inline auto whole(const Value &value)
{
    using captured = decltype(capture(value));
    if constexpr (!std::is_same_v<captured, nl_string> || std::is_same_v<Value, nl_string>)
        return capture(value);
    else if constexpr (std::is_pointer_v<std::decay_t<Value>>)
        return view(value != nullptr ? value : "(null)");
    else
        return view(value);
}

template <class Name, class Value> inline nl_field named(const field<Name, Value> &given)
{
    static_assert(raw_type<Value> != NL_RAW_NONE, "a field has a value of a type that cannot be logged");
    nl_field made = typed(whole(given.value));
    made.name = view(Name::text);
    return made;
}

/* A value that outlives the call: text is copied. */
template <class Value> inline auto keep(const Value &value)
{
    using captured = decltype(capture(value));
    if constexpr (std::is_same_v<captured, nl_string>) {
        nl_string text = capture(value);
        return std::string(text.data, text.size);
    } else {
        return capture(value);
    }
}

template <class Start, class Suffix> struct joined;
template <char... Start, char... Suffix> struct joined<event_name<Start...>, event_name<Suffix...>> {
    using type = event_name<Start..., Suffix...>;
};
using start_suffix = event_name<'.', 's', 't', 'a', 'r', 't'>;
using end_suffix = event_name<'.', 'e', 'n', 'd'>;
using status_name = field_name<'S', 'T', 'A', 'T', 'U', 'S'>;

} // namespace detail

/**
 * Sets the function that receives the messages of all logs; nullptr: standard error does. Call it before a log is
 * opened.
 *
 * @param handler called in any thread; it must not use logs
 * @param user passed to handler
 */
inline void set_message_handler(nl_message_handler *handler, void *user = nullptr) noexcept
{
    nl_set_message_handler(handler, user);
}

template <class Event, class... Fields> class span;

/**
 * A log; log.h says what it does. Moved, not copied. Any number of threads may call what is const. Events may be
 * logged in signal handlers, as with NL_EVENT, when their names are literals.
 */
class log
{
  public:
    /** A log that is off: it takes everything and writes nothing. */
    log() = default;

    /**
     * Opens a log. It is off, without an error, when logging is switched off or there is no destination.
     *
     * @param prog the program's name in every record
     * @param url where to, as nl_open takes it; nullptr: $NETLOGGER_DEST
     * @throws netlogger::error if the URL is invalid or can never work, but not if the destination is unreachable now
     */
    explicit log(const char *prog, const char *url = nullptr) : handle(nl_open(prog, url))
    {
        if (handle == nullptr && *nl_error_message() != '\0')
            throw error();
    }
    /** The same. */
    explicit log(const std::string &prog, const std::string &url) : log(prog.c_str(), url.c_str())
    {
    }

    /** Takes over other's log; other is off then. */
    log(log &&other) noexcept : handle(std::exchange(other.handle, nullptr))
    {
    }
    /** Closes its own log, and takes over other's. */
    log &operator=(log &&other) noexcept
    {
        if (this != &other) {
            nl_close(handle);
            handle = std::exchange(other.handle, nullptr);
        }
        return *this;
    }
    /** Flushes and closes; close() returns whether that succeeded. */
    ~log()
    {
        nl_close(handle);
    }

    /** Whether it is open. */
    explicit operator bool() const noexcept
    {
        return handle != nullptr;
    }

    /** For the C interface: NL_EVENT(log.get(), ...), NL_MARKER's probes. The log stays this object's. */
    nl_log *get() const noexcept
    {
        return handle;
    }

    /**
     * Writes an event: log.event("WriteData"_e, "SEND.SZ"_f = size). Waits for nothing but what the log's policy says.
     *
     * @tparam Level its level
     * @param fields at most 16
     * @return false when it is off, or lost: then it is counted, and the log says so
     */
    template <nl_level Level = NL_USAGE, char... Text, class... Names, class... Values>
    bool event(event_name<Text...>, const field<Names, Values> &...fields) const noexcept
    {
        using site = detail::site<Level, event_name<Text...>, field<Names, Values>...>;
        if (!detail::is_on(handle, Level) || __atomic_load_n(&site::it.off, __ATOMIC_RELAXED))
            return false;
        return detail::put(handle, &site::it, detail::capture(fields.value)...);
    }

    /** The same with a name that is known only now; it takes some times as long. */
    template <nl_level Level = NL_USAGE, class... Names, class... Values>
    bool event(std::string_view name, const field<Names, Values> &...fields) const noexcept
    {
        if (!detail::is_on(handle, Level))
            return false;
        const nl_field list[] = {detail::named(fields)..., nl_field{}};
        nl_record record{};
        record.level = Level;
        record.event = detail::view(name);
        record.fields = list;
        record.field_count = sizeof...(Names);
        return nl_write_record(handle, &record) == NL_OK;
    }

    /** event() with the level Error; error is the exception's name. */
    template <class... Rest> bool error_event(const Rest &...rest) const noexcept
    {
        return event<NL_ERROR>(rest...);
    }
    /** event() with the level Warning. */
    template <class... Rest> bool warning(const Rest &...rest) const noexcept
    {
        return event<NL_WARNING>(rest...);
    }
    /** event() with the level Debug. */
    template <class... Rest> bool debug(const Rest &...rest) const noexcept
    {
        return event<NL_DEBUG>(rest...);
    }

    /** Name.start now, and Name.end when what is returned goes out of scope, both with these fields: see span. */
    template <char... Text, class... Names, class... Values>
    [[nodiscard]] auto span(event_name<Text...> name, const field<Names, Values> &...fields) const
    {
        return netlogger::span<event_name<Text...>, field<Names, Values>...>(*this, name, fields...);
    }

    /**
     * Writes an event as nl_write does: NAME=conversion pairs and values as printf takes them.
     *
     * @param name the event's name
     * @param format such as "SEND.SZ=%ld FILE=%s"; nullptr for no fields
     * @return false if the log is off or the event is lost
     */
    bool write(nl_level level, const char *name, const char *format, ...) const noexcept NL_PRINTF(4, 5);

    /** Writes no events of levels after this one from now on. */
    void set_level(nl_level level) const noexcept
    {
        nl_set_level(handle, level);
    }

    /** Selects what happens to an event when its thread's ring is full: see nl_set_policy. Call it before other
     * threads use the log. @param block_ns maximum wait in nanoseconds @param keep_level for NL_POLICY_LEVEL */
    void set_policy(nl_policy policy, std::int64_t block_ns = 0, nl_level keep_level = NL_WARNING) const noexcept
    {
        nl_set_policy(handle, policy, block_ns, keep_level);
    }

    /** Sets the maximum time in nanoseconds that the writer thread sleeps while nothing is logged: see nl_set_idle. */
    void set_idle(std::int64_t idle_ns) const noexcept
    {
        nl_set_idle(handle, idle_ns);
    }

    /** Checks commands as a collector may send them, without executing any. @throws netlogger::error if one is wrong */
    static void check(std::string_view commands)
    {
        if (nl_control_check(commands.data(), commands.size()) == NL_FAILED)
            throw error();
    }

    /** Does what the lines of commands say, as nl_control does. @throws netlogger::error when it can't */
    void control(std::string_view commands) const
    {
        if (nl_control(handle, commands.data(), commands.size()) == NL_FAILED)
            throw error();
    }

    /** Sends what was written, and waits for that. @throws netlogger::error when not all of it could be sent */
    void flush() const
    {
        if (nl_flush(handle) == NL_FAILED)
            throw error();
    }

    /**
     * Flushes and closes; the log is off from here on. No other thread may be logging to it.
     *
     * @return false if not all events were delivered; nl_error_message() has their number, the place and the reason
     */
    bool close() noexcept
    {
        return nl_close(std::exchange(handle, nullptr)) != NL_FAILED;
    }

  private:
    nl_log *handle = nullptr;
};

inline bool log::write(nl_level level, const char *name, const char *format, ...) const noexcept
{
    va_list arguments;
    va_start(arguments, format);
    nl_status status = nl_vwrite(handle, level, name, format, arguments);
    va_end(arguments);
    return status == NL_OK;
}

/**
 * The time between Name.start, written when it is made, and Name.end, written when it ends, with the same fields, so
 * that the two are found to belong together. Name.end says STATUS=0, or STATUS=-1 when an exception ends it. The log
 * must outlive it.
 */
template <char... Text, class... Names, class... Values> class span<event_name<Text...>, field<Names, Values>...>
{
    using start_name = typename detail::joined<event_name<Text...>, detail::start_suffix>::type;
    using end_name = typename detail::joined<event_name<Text...>, detail::end_suffix>::type;

  public:
    /** Writes Name.start; log.span() makes it. Text in fields is copied. */
    span(const netlogger::log &log, event_name<Text...>, const field<Names, Values> &...fields)
        : to(&log), exceptions(std::uncaught_exceptions()), values(detail::keep(fields.value)...)
    {
        log.event(start_name{}, fields...);
    }
    span(const span &) = delete;
    span &operator=(const span &) = delete;
    /** Writes Name.end, unless that was done. */
    ~span()
    {
        if (to != nullptr)
            finish(std::uncaught_exceptions() > exceptions ? -1 : 0);
    }

    /** Ends it now, with more fields: what is known only at the end. Later calls do nothing. */
    template <class... MoreNames, class... MoreValues> void end(const field<MoreNames, MoreValues> &...more)
    {
        if (to != nullptr)
            finish(0, more...);
    }

    /** The same as ended in failure: STATUS=-1. */
    template <class... MoreNames, class... MoreValues> void fail(const field<MoreNames, MoreValues> &...more)
    {
        if (to != nullptr)
            finish(-1, more...);
    }

  private:
    template <class... More> void finish(int status, const More &...more)
    {
        std::apply(
            [&](const auto &...kept) {
                to->event(end_name{}, (Names{} = kept)..., more..., detail::status_name{} = status);
            },
            values);
        to = nullptr;
    }

    const netlogger::log *to; /* nullptr once it has ended */
    int exceptions;           /* under way when it began */
    std::tuple<decltype(detail::keep(std::declval<const Values &>()))...> values;
};

/* ---- reading ---- */

/** A field of a record that was read: its name and its value; good until the reader's next record. */
class value
{
  public:
    /** What field, which the library found, holds. */
    explicit value(const nl_field &field) : field(field)
    {
    }

    /** Its name. */
    std::string_view name() const
    {
        return {field.name.data, field.name.size};
    }
    /** Its type; text formats have texts only. */
    nl_type type() const
    {
        return field.type;
    }

    /** As ULM writes it. */
    std::string text() const
    {
        char scratch[NL_FIELD_TEXT_SIZE];
        nl_string text = nl_field_text(&field, scratch);
        return {text.data, text.size};
    }

    /** As a whole number; nothing when it is none, or has more than 64 bits. */
    std::optional<std::int64_t> integer() const
    {
        std::int64_t number;
        return nl_field_int(&field, &number) ? std::optional(number) : std::nullopt;
    }
    /** As a number; nothing when it is none. */
    std::optional<double> number() const
    {
        double number;
        return nl_field_double(&field, &number) ? std::optional(number) : std::nullopt;
    }

  private:
    nl_field field;
};

/** A record that was read; what it returns is good until the reader's next one. */
class record
{
  public:
    /** What data, the library's, holds. */
    explicit record(const nl_record *data = nullptr) : data(data)
    {
    }

    /** Nanoseconds since 1970 UTC. */
    std::int64_t time_ns() const
    {
        return data->time_ns;
    }
    /** Its level; NL_LEVEL_NONE when it has none. */
    nl_level level() const
    {
        return data->level;
    }
    /** Where it comes from; empty, as are those below, when it does not say. */
    std::string_view host() const
    {
        return view(data->host);
    }
    /** The program. */
    std::string_view prog() const
    {
        return view(data->prog);
    }
    /** The event's name. */
    std::string_view event() const
    {
        return view(data->event);
    }
    /** How many fields it has beside these. */
    std::size_t size() const
    {
        return data->field_count;
    }
    /** The field at a place, from 0. */
    value operator[](std::size_t place) const
    {
        return value(data->fields[place]);
    }

    /** The first field of that name, a standard one too ("HOST", "DATE"); nothing when there is none. */
    std::optional<value> find(const char *name) const
    {
        nl_field field;
        return nl_record_find(data, name, &field) ? std::optional(value(field)) : std::nullopt;
    }
    /** The record as text or as a block. @throws netlogger::error if it cannot be written in that format */
    std::string encode(nl_format format) const
    {
        nl_buffer buffer{};
        nl_status status = nl_record_encode(data, format, &buffer);
        std::string bytes(buffer.data != nullptr ? buffer.data : "", buffer.size);
        nl_buffer_free(&buffer);
        if (status != NL_OK)
            throw error();
        return bytes;
    }
    /** For the C interface: the library's record. */
    const nl_record *get() const
    {
        return data;
    }

  private:
    static std::string_view view(nl_string text)
    {
        return text.data != nullptr ? std::string_view(text.data, text.size) : std::string_view();
    }
    const nl_record *data;
};

/** A copy of a record, which lasts as long as this object. */
class stored_record
{
  public:
    /** Copies a record. @throws netlogger::error if memory runs out */
    explicit stored_record(const record &source) : data(nl_record_new())
    {
        if (data == nullptr)
            throw error();
        nl_record_copy(data.get(), source.get());
        if (data->flags & NL_RECORD_INCOMPLETE)
            throw error();
    }
    /** Empties the record, and keeps its memory for the next copy. */
    void clear() noexcept
    {
        nl_record_clear(data.get());
    }
    /** The copy. */
    record get() const
    {
        return record(data.get());
    }

  private:
    struct closer {
        void operator()(nl_record *record) const
        {
            nl_record_free(record);
        }
    };
    std::unique_ptr<nl_record, closer> data;
};

/**
 * The records of a source, once, in their order:
 *
 *   for (const netlogger::record &record : netlogger::reader("a.log", "LVL <= Warning"))
 *
 * What cannot be read as a record is passed over and counted (stats().malformed). For one thread at a time.
 */
class reader
{
  public:
    /**
     * Opens a source.
     *
     * @param source a file, "-", a collector: what nl_reader_open takes
     * @param where an expression that chooses records (filter.h); "" for all
     * @param follow at the end of a file wait for more
     * @throws netlogger::error when it cannot be opened, or where is no expression
     */
    explicit reader(const std::string &source, const std::string &where = "", bool follow = false)
    {
        nl_reader_options options{};
        options.follow = follow;
        if (!where.empty()) {
            filter.reset(nl_filter_parse(where.c_str()));
            if (filter == nullptr)
                throw error();
        }
        handle.reset(nl_reader_open(source.c_str(), &options));
        if (handle == nullptr)
            throw error();
    }

    /** The next record, or nothing at the end. @throws netlogger::error when the source cannot be read */
    std::optional<record> next()
    {
        const nl_record *found;
        nl_status status;
        while ((status = nl_reader_next(handle.get(), &found)) == NL_OK)
            if (filter == nullptr || nl_filter_matches(filter.get(), found))
                return record(found);
        if (status == NL_FAILED)
            throw error();
        return std::nullopt;
    }

    /** Counts so far; good as long as the reader. */
    const nl_reader_stats &stats() const
    {
        return *nl_reader_get_stats(handle.get());
    }

    /** An input iterator over the records that are left. */
    class iterator
    {
      public:
        using iterator_category = std::input_iterator_tag; /**< It goes through once. */
        using value_type = record;                         /**< What it is at. */
        using difference_type = std::ptrdiff_t;            /**< None is taken. */
        using pointer = const record *;                    /**< To what it is at. */
        using reference = const record &;                  /**< The same. */

        /** The end. */
        iterator() = default;
        /** At the reader's next record. */
        explicit iterator(reader &from) : from(&from), now(from.next())
        {
        }
        /** The record; good until the next. */
        reference operator*() const
        {
            return *now;
        }
        /** The same. */
        pointer operator->() const
        {
            return &*now;
        }
        /** Goes to the next record. @throws netlogger::error when the source cannot be read */
        iterator &operator++()
        {
            now = from->next();
            return *this;
        }
        /** The same. */
        void operator++(int)
        {
            ++*this;
        }
        /** Whether both are at the end, or neither. */
        bool operator==(const iterator &other) const
        {
            return now.has_value() == other.now.has_value();
        }
        /** The opposite. */
        bool operator!=(const iterator &other) const
        {
            return !(*this == other);
        }

      private:
        reader *from = nullptr;
        std::optional<record> now;
    };
    /** The record that comes next. */
    iterator begin()
    {
        return iterator(*this);
    }
    /** Behind the last. */
    iterator end()
    {
        return {};
    }

  private:
    struct closer {
        void operator()(nl_reader *reader) const
        {
            nl_reader_close(reader);
        }
        void operator()(nl_filter *filter) const
        {
            nl_filter_free(filter);
        }
    };
    std::unique_ptr<nl_filter, closer> filter;
    std::unique_ptr<nl_reader, closer> handle;
};

/* ---- markers, recovery, costs ---- */

namespace detail
{

/* Calls a C function that reports items of type Item to a callback; passes a callback's exception on to the caller. */
template <class Item, class Each, class Call> nl_status for_each(Each &each, Call call)
{
    struct visit {
        Each &each;
        std::exception_ptr thrown;
    } state{each, nullptr};
    nl_status status = call(
        [](void *user, const Item *item) {
            auto *at = static_cast<visit *>(user);
            try {
                if (at->thrown == nullptr)
                    at->each(*item);
            } catch (...) {
                at->thrown = std::current_exception();
            }
        },
        &state);
    if (state.thrown != nullptr)
        std::rethrow_exception(state.thrown);
    return status;
}

} // namespace detail

/**
 * A probe at the markers (NL_MARKER) whose names match a pattern (fnmatch(3)). The destructor detaches it. marker.h
 * describes the kinds of probes.
 */
class probe
{
  public:
    /** What call() calls, in the thread that passes the marker. It must not throw. */
    using function = std::function<void(const char *marker, const nl_field *fields, std::size_t field_count)>;

    /** Logs each pass to log, which must outlive the probe. @throws netlogger::error if the pattern is empty */
    static probe logging(const std::string &pattern, const netlogger::log &log, nl_level level = NL_USAGE)
    {
        return probe(nl_marker_attach_log(pattern.c_str(), log.get(), level));
    }
    /** Counts passes. @throws netlogger::error if the pattern is empty */
    static probe counting(const std::string &pattern)
    {
        return probe(nl_marker_attach_count(pattern.c_str()));
    }
    /** Measures the time between two markers. @throws netlogger::error as nl_marker_attach_time fails */
    static probe timing(const std::string &from, const std::string &to)
    {
        return probe(nl_marker_attach_time(from.c_str(), to.c_str()));
    }
    /** Calls each at each pass. @throws netlogger::error if the pattern is empty */
    static probe calling(const std::string &pattern, function each)
    {
        auto kept = std::make_unique<function>(std::move(each));
        probe made(nl_marker_attach_call(pattern.c_str(), pass, kept.get()));
        made.kept = std::move(kept);
        return made;
    }

    /** Takes over other's probe. */
    probe(probe &&other) noexcept : number(std::exchange(other.number, 0)), kept(std::move(other.kept))
    {
    }
    probe &operator=(probe &&other) = delete;
    /** Detaches it. No thread is in the probe afterwards. */
    ~probe()
    {
        if (number != 0)
            nl_marker_detach(number);
    }

    /** What the probe has measured so far. @throws netlogger::error if something else detached the probe */
    nl_probe_info read() const
    {
        nl_probe_info info;
        if (!nl_probe_read(number, &info))
            throw error("the probe is detached");
        return info;
    }

  private:
    explicit probe(nl_probe number) : number(number)
    {
        if (number == 0)
            throw error();
    }
    static void pass(void *user, const char *marker, const nl_field *fields, std::size_t field_count)
    {
        (*static_cast<const function *>(user))(marker, fields, field_count);
    }

    nl_probe number;
    std::unique_ptr<function> kept; /* of calling() */
};

/** Calls each(const nl_marker_info &) for each marker of the program. @throws netlogger::error if memory runs out */
template <class Each> void for_each_marker(Each each)
{
    if (detail::for_each<nl_marker_info>(each, nl_marker_list) != NL_OK)
        throw error();
}

/** Calls each(const nl_probe_info &) for each attached probe. @throws netlogger::error if memory runs out */
template <class Each> void for_each_probe(Each each)
{
    if (detail::for_each<nl_probe_info>(each, nl_probe_list) != NL_OK)
        throw error();
}

/**
 * Measures what logging costs and calls each(const nl_event_cost &) for each kind of event: see nl_event_costs.
 *
 * @throws netlogger::error if it cannot be measured
 */
template <class Each> void for_each_event_cost(Each each)
{
    if (detail::for_each<nl_event_cost>(each, nl_event_costs) != NL_OK)
        throw error();
}

/**
 * Delivers what ended programs left in shared memory and calls each(const nl_recovered &) for each of their logs.
 *
 * @return whether everything is delivered; nl_error_message() has the reason if not
 */
template <class Each> bool recover(const nl_recover_options &options, Each each)
{
    return detail::for_each<nl_recovered>(
               each, [&](auto report, void *user) { return nl_recover(&options, report, user); }) == NL_OK;
}

/* ---- time ---- */

/** The time now, in nanoseconds since 1970 UTC. */
inline std::int64_t now_ns()
{
    return nl_time_now_ns();
}
/** Parses a ULM DATE, an ISO 8601 time or seconds since 1970. @throws netlogger::error if text is none of them */
inline std::int64_t parse_time(std::string_view text)
{
    std::int64_t time_ns;
    if (nl_time_parse(text.data(), text.size(), NL_FRACTION_DECIMAL, &time_ns) != NL_OK)
        throw error();
    return time_ns;
}
/** A time, in nanoseconds since 1970 UTC, as a ULM DATE. */
inline std::string format_time(std::int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    return std::string(text, nl_time_format_ulm(time_ns, text));
}

} // namespace netlogger

#endif
