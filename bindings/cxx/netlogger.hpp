/**
 * @file
 * NetLogger in C++17, on top of <netlogger.h>. Include this header and link with -lnetlogger.
 *
 *   using namespace netlogger::literals;
 *   netlogger::log log("testProg", "x-netlog://dolly.lbl.gov");
 *   log.event("WriteData"_e, "SEND.SZ"_f = size, "FILE"_f = name);
 *   {
 *       auto reading = log.span("Read"_e, "BLOCK.ID"_f = id);    // Read.start now, Read.end at the end of the block
 *       ...
 *   }
 *
 * An event whose names are literals compiles to the same instructions as NL_EVENT. Such an event takes no lock, makes
 * no system call and allocates no memory, with the exceptions that event.h lists. An event whose name is known only at
 * run time, as in log.event(std::string, ...), goes into the ring as a whole record.
 *
 * Values are numbers, bool, enumerations and text: const char *, std::string, std::string_view, which are copied
 * before the call returns. Other types are compile errors.
 *
 * Failures to open, flush or read throw netlogger::error with the library's message. Logging and closing do not throw:
 * a lost event is counted and reported in the log (log.h), and close() returns whether all events were delivered.
 *
 * Any number of threads may use a log. Only one thread at a time may use a reader. A child of fork() continues to use
 * its logs.
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
#error "netlogger.hpp requires C++17"
#endif

/** Logs, spans and readers. */
namespace netlogger
{

/** A failure, with the library's message. */
class error : public std::runtime_error
{
  public:
    /** Creates an exception with the message of this thread's latest failure. */
    error() : std::runtime_error(nl_error_message())
    {
    }
    /** Creates an exception with the given message. */
    explicit error(const std::string &what) : std::runtime_error(what)
    {
    }
};

/* ---- names that are known at compile time ---- */

/** Returns whether text is a valid field name. @param text ends with a NUL */
constexpr bool is_name(const char *text)
{
    bool good = (*text | 0x20) >= 'a' && (*text | 0x20) <= 'z';
    for (good |= *text == '_'; *text != '\0'; text++)
        good &= (*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9') ||
                *text == '.' || *text == '_' || *text == '-';
    return good;
}

/** The name of an event, as a type: "WriteData"_e. */
template <char... Text> struct event_name {
    /** The name with a NUL. */
    static constexpr char text[] = {Text..., '\0'};
};

/**
 * A field of a call. A field has its name and a reference to its value. The value must be valid until the call returns.
 */
template <class Name, class Value> struct field {
    /** The value; not owned. */
    const Value &value;
};

/** The name of a field, as a type: "SEND.SZ"_f. */
template <char... Text> struct field_name {
    /** The name with a NUL. */
    static constexpr char text[] = {Text..., '\0'};

    /** Returns the field with this value, for use in the same call. */
    template <class Value> constexpr field<field_name, Value> operator=(const Value &value) const
    {
        return {value};
    }
};

/** Literals for names: using namespace netlogger::literals. */
namespace literals
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wgnu-string-literal-operator-template"
#endif
/** The name of an event. An extension of gcc and clang in C++17. */
template <class Char, Char... Text> constexpr event_name<Text...> operator""_e()
{
    static_assert(sizeof...(Text) > 0, "an event needs a name");
    return {};
}

/** The name of a field. It has letters, digits, '.', '_' and '-', and begins with a letter or '_'. */
template <class Char, Char... Text> constexpr field_name<Text...> operator""_f()
{
    static_assert(
        is_name(field_name<Text...>::text),
        "a field name may contain only letters, digits, '.', '_' and '-', and must not begin with a digit, '.' or '-'");
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

/* Converts a value for the ring. */
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

/* The constant parts of an event. There is one site for each combination of level, name, and names and types of
 * fields. */
template <nl_level Level, class Event, class... Fields> struct site;
template <nl_level Level, class Event, class... Names, class... Values>
struct site<Level, Event, field<Names, Values>...> {
    static_assert(Level >= NL_EMERGENCY && Level <= NL_DEBUG,
                  "the level of an event must be from NL_EMERGENCY to NL_DEBUG");
    static_assert(sizeof...(Names) <= NL_FIELDS_MAX, "an event can have at most 16 fields");
    static_assert(((raw_type<Values> != NL_RAW_NONE) && ...), "the type of a field value cannot be logged");
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

/* ---- names that are known at run time ---- */

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

/* Converts a value for a record; the library truncates long text later. */
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
    static_assert(raw_type<Value> != NL_RAW_NONE, "the type of a field value cannot be logged");
    nl_field made = typed(whole(given.value));
    made.name = view(Name::text);
    return made;
}

/* The constant parts of the start of a span, with and without a parent, and of an end without fields (see NL_SPAN). */
template <nl_level Level, class Event, class... Fields> struct span_place;
template <nl_level Level, char... Text, class... Names, class... Values>
struct span_place<Level, event_name<Text...>, field<Names, Values>...> {
    static_assert(Level >= NL_EMERGENCY && Level <= NL_DEBUG,
                  "the level of a span must be from NL_EMERGENCY to NL_DEBUG");
    static_assert(sizeof...(Names) <= NL_FIELDS_MAX, "a span can have at most 16 fields");
    static_assert(((raw_type<Values> != NL_RAW_NONE) && ...), "the type of a field value cannot be logged");
    static constexpr char start[] = {Text..., '.', 's', 't', 'a', 'r', 't', '\0'};
    static constexpr char end[] = {Text..., '.', 'e', 'n', 'd', '\0'};
    static constexpr const char *names[] = {"PARENT.ID", "TRACE.ID", "SPAN.ID", Names::text..., nullptr};
    static constexpr const char *end_names[] = {"PARENT.ID", "TRACE.ID", "SPAN.ID", "STATUS", nullptr};
    static constexpr unsigned char types[] = {NL_RAW_SPAN_ID, NL_RAW_TRACE_ID, NL_RAW_SPAN_ID, raw_type<Values>..., 0};
    static constexpr unsigned char end_types[] = {NL_RAW_SPAN_ID, NL_RAW_TRACE_ID, NL_RAW_SPAN_ID, NL_RAW_INT32, 0};
    static constexpr unsigned short count = 3 + sizeof...(Names);
    static inline nl_span_place it = {{{start, names, types, count, Level, 0, 0, nullptr},
                                       {start, names + 1, types + 1, count - 1, Level, 0, 0, nullptr}},
                                      {{end, end_names, end_types, 4, Level, 0, 0, nullptr},
                                       {end, end_names + 1, end_types + 1, 3, Level, 0, 0, nullptr}}};
};

/* The constant parts of the end of a span with these fields. */
template <class... Fields> struct span_end_place;
template <class... Names, class... Values> struct span_end_place<field<Names, Values>...> {
    static_assert(sizeof...(Names) <= NL_FIELDS_MAX, "a span can have at most 16 fields");
    static_assert(((raw_type<Values> != NL_RAW_NONE) && ...), "the type of a field value cannot be logged");
    static constexpr const char *names[] = {"PARENT.ID", "TRACE.ID", "SPAN.ID", "STATUS", Names::text..., nullptr};
    static constexpr unsigned char types[] = {NL_RAW_SPAN_ID, NL_RAW_TRACE_ID,     NL_RAW_SPAN_ID,
                                              NL_RAW_INT32,   raw_type<Values>..., 0};
    static inline nl_span_end_place it = {names, types, 4 + sizeof...(Names), nullptr};
};

template <class... Captured>
inline void begin(nl_span &span, nl_log *log, nl_span_place *place, const nl_context *parent, const Captured &...values)
{
    std::size_t size = NL_PRIVATE_SPAN_HEAD + (std::size_t{0} + ... + nl_private_size_of(values));
    nl_ring_producer *ring;
    char *at = nl_private_span_begin(&span, log, place, parent, &size, &ring);
    if (at == nullptr)
        return;
    ((at = nl_private_put(at, values)), ...);
    nl_private_commit(ring, size);
}

template <class... Captured> inline void end(nl_span &span, nl_span_end_place *place, const Captured &...values)
{
    std::size_t size = NL_PRIVATE_SPAN_END_HEAD + (std::size_t{0} + ... + nl_private_size_of(values));
    nl_ring_producer *ring;
    char *at = nl_private_span_end(&span, place, &size, &ring);
    if (at == nullptr)
        return;
    ((at = nl_private_put(at, values)), ...);
    nl_private_commit(ring, size);
}

} // namespace detail

/**
 * Sets the function that receives the messages of all logs. If it is nullptr, the library prints the messages. Call it
 * before opening a log.
 *
 * @param handler called in any thread; it must not use logs
 * @param user passed to handler
 */
inline void set_message_handler(nl_message_handler *handler, void *user = nullptr) noexcept
{
    nl_set_message_handler(handler, user);
}

/** A trace and a span in it (see span.h). A context is a value, so pass copies to other threads. */
class context
{
  public:
    /** The empty context. A span whose parent is the empty context begins a trace. */
    context() = default;
    /** Wraps a context of the library. */
    explicit context(const nl_context &it) : it(it)
    {
    }
    /** Returns the calling thread's current context. */
    static context current() noexcept
    {
        return context(nl_context_current());
    }
    /** Returns the context of a traceparent header. The context is empty if the header is invalid. */
    static context parse(std::string_view traceparent) noexcept
    {
        context parsed;
        nl_traceparent_parse(traceparent.data() != nullptr ? traceparent.data() : "", traceparent.size(), &parsed.it);
        return parsed;
    }
    /**
     * Returns the context of the environment variable TRACEPARENT. The context is empty if the variable is missing or
     * invalid.
     */
    static context environment() noexcept
    {
        context parsed;
        nl_traceparent_parse(nullptr, 0, &parsed.it);
        return parsed;
    }
    /** Returns the traceparent header for a request to another process, or "" if the context is empty. */
    std::string traceparent() const
    {
        char text[NL_TRACEPARENT_SIZE];
        return std::string(text, nl_traceparent_format(&it, text));
    }
    /** Returns the context for the C interface. */
    const nl_context &get() const noexcept
    {
        return it;
    }

  private:
    nl_context it{};
};

/** Makes a context the current context of the thread that creates this object, for the object's scope. */
class attached
{
  public:
    /** Attaches a copy of the context. */
    explicit attached(const context &next) noexcept : previous(nl_context_attach(&next.get()))
    {
    }
    attached(const attached &) = delete;
    attached &operator=(const attached &) = delete;
    /** Attaches the context that was attached before. */
    ~attached()
    {
        nl_context_attach(&previous);
    }

  private:
    nl_context previous;
};

/**
 * Joins the values of tracestate headers into one value (see nl_tracestate_append). Returns "" if a value is invalid.
 */
template <class Headers> std::string join_tracestate(const Headers &headers)
{
    char state[NL_TRACESTATE_SIZE] = "";
    for (const std::string_view header : headers)
        if (nl_tracestate_append(state, header.data(), header.size()) != NL_OK)
            return {};
    return state;
}

class log;

/**
 * A span, which logs Name.start and Name.end (see span.h). A span from log.span() is the thread's current context until
 * the span's scope ends. A span from log.detached_span() may end in any thread. The destructor of a span logs Name.end
 * with STATUS=0, or STATUS=-1 if an exception ends the span. The log must outlive the span.
 */
class span
{
  public:
    span(const span &) = delete;
    span &operator=(const span &) = delete;
    /** Logs Name.end, unless the span has ended. */
    ~span()
    {
        if (it.log != nullptr)
            finish(std::uncaught_exceptions() > exceptions ? -1 : it.status);
    }

    /** Ends the span now, with more fields. Later calls do nothing. */
    template <class... Names, class... Values> void end(const field<Names, Values> &...more) noexcept
    {
        finish(it.status, more...);
    }

    /** Ends the span as failed, with STATUS=-1. */
    template <class... Names, class... Values> void fail(const field<Names, Values> &...more) noexcept
    {
        finish(-1, more...);
    }

    /** Sets the STATUS that Name.end gets. */
    void set_status(int status) noexcept
    {
        it.status = status;
    }

    /** Returns the context for child spans and requests. If the span is off, this is the parent's context. */
    netlogger::context context() const noexcept
    {
        return netlogger::context(it.context);
    }

  private:
    friend class log;

    template <class Place, class... Names, class... Values>
    span(const log &log, Place, const nl_context &parent, bool current, const field<Names, Values> &...fields) noexcept;

    template <class... Names, class... Values> void finish(int status, const field<Names, Values> &...more) noexcept
    {
        if (it.log == nullptr)
            return;
        if (is_current)
            nl_context_attach(&previous);
        it.status = status;
        detail::end(it, &detail::span_end_place<field<Names, Values>...>::it, detail::capture(more.value)...);
    }

    nl_span it{};
    nl_context previous{};
    bool is_current = false;
    int exceptions = std::uncaught_exceptions(); /* number of active exceptions when the span began */
};

/**
 * A log (see log.h). A log can be moved, but not copied. Any number of threads may call its const members. Signal
 * handlers may log events whose names are literals, as with NL_EVENT.
 */
class log
{
  public:
    /** Creates a log that is off. It accepts all calls and writes nothing. */
    log() = default;

    /**
     * Opens a log. The log is off, without an error, if logging is switched off or there is no destination.
     *
     * @param prog the program's name in every record
     * @param url the destination, see nl_open; nullptr: $NETLOGGER_DEST
     * @throws netlogger::error if the URL is invalid or its destination can never work; not if it is only unreachable
     * now
     */
    explicit log(const char *prog, const char *url = nullptr) : handle(nl_open(prog, url))
    {
        if (handle == nullptr && *nl_error_message() != '\0')
            throw error();
    }
    /** Opens a log, with strings as arguments. */
    explicit log(const std::string &prog, const std::string &url) : log(prog.c_str(), url.c_str())
    {
    }

    /** Moves the log of other to this object; other is off afterwards. */
    log(log &&other) noexcept : handle(std::exchange(other.handle, nullptr))
    {
    }
    /** Closes this log and moves the log of other to this object. */
    log &operator=(log &&other) noexcept
    {
        if (this != &other) {
            nl_close(handle);
            handle = std::exchange(other.handle, nullptr);
        }
        return *this;
    }
    /** Flushes and closes the log. close() returns whether all events were delivered. */
    ~log()
    {
        nl_close(handle);
    }

    /** Returns whether the log is open. */
    explicit operator bool() const noexcept
    {
        return handle != nullptr;
    }

    /** Returns the log for the C interface, such as NL_EVENT(log.get(), ...) and probes. This object owns the log. */
    nl_log *get() const noexcept
    {
        return handle;
    }

    /**
     * Writes an event: log.event("WriteData"_e, "SEND.SZ"_f = size). Waits only if the log's policy requires this.
     *
     * @tparam Level level of the event
     * @param fields at most 16
     * @return false if the event is off or lost; the log counts and reports losses
     */
    template <nl_level Level = NL_USAGE, char... Text, class... Names, class... Values>
    bool event(event_name<Text...>, const field<Names, Values> &...fields) const noexcept
    {
        using site = detail::site<Level, event_name<Text...>, field<Names, Values>...>;
        if (!detail::is_on(handle, Level) || __atomic_load_n(&site::it.off, __ATOMIC_RELAXED))
            return false;
        return detail::put(handle, &site::it, detail::capture(fields.value)...);
    }

    /**
     * Writes an event with a name that is known only at run time. Such a call takes several times as long.
     *
     * @return false if the event is off or lost, or a value was truncated
     */
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

    /**
     * Like event(), with the level Error. (The function is not called error, because that is the name of the
     * exception.)
     */
    template <class... Rest> bool error_event(const Rest &...rest) const noexcept
    {
        return event<NL_ERROR>(rest...);
    }
    /** Like event(), with the level Warning. */
    template <class... Rest> bool warning(const Rest &...rest) const noexcept
    {
        return event<NL_WARNING>(rest...);
    }
    /** Like event(), with the level Debug. */
    template <class... Rest> bool debug(const Rest &...rest) const noexcept
    {
        return event<NL_DEBUG>(rest...);
    }

    /**
     * Begins a span, which is the thread's current context until the end of the returned object's scope. Its parent is
     * the current context.
     *
     * @tparam Level level of the event
     * @param fields at most 16
     */
    template <nl_level Level = NL_USAGE, char... Text, class... Names, class... Values>
    [[nodiscard]] netlogger::span span(event_name<Text...>, const field<Names, Values> &...fields) const noexcept
    {
        using place = detail::span_place<Level, event_name<Text...>, field<Names, Values>...>;
        return netlogger::span(*this, place{}, nl_private_current.context, true, fields...);
    }

    /** Begins a span with the given parent. The span is not the current context, and may end in any thread. */
    template <nl_level Level = NL_USAGE, char... Text, class... Names, class... Values>
    [[nodiscard]] netlogger::span detached_span(const context &parent, event_name<Text...>,
                                                const field<Names, Values> &...fields) const noexcept
    {
        using place = detail::span_place<Level, event_name<Text...>, field<Names, Values>...>;
        return netlogger::span(*this, place{}, parent.get(), false, fields...);
    }

    /**
     * Writes an event as nl_write does, with NAME=conversion pairs and values as for printf.
     *
     * @param name the name of the event
     * @param format such as "SEND.SZ=%ld FILE=%s"; nullptr for no fields
     * @return false if the log or the level is off, the event is lost, or a value was truncated
     */
    bool write(nl_level level, const char *name, const char *format, ...) const noexcept NL_PRINTF(4, 5);

    /** Sets the threshold. Events with less urgent levels are not written. */
    void set_level(nl_level level) const noexcept
    {
        nl_set_level(handle, level);
    }

    /**
     * Sets the policy for an event whose ring is full (see nl_set_policy). Call it before other threads use the log.
     *
     * @param block_ns maximum wait in nanoseconds
     * @param keep_level for NL_POLICY_LEVEL
     */
    void set_policy(nl_policy policy, std::int64_t block_ns = 0, nl_level keep_level = NL_WARNING) const noexcept
    {
        nl_set_policy(handle, policy, block_ns, keep_level);
    }

    /** Sets the maximum time in nanoseconds that the writer thread sleeps while nothing is logged (see nl_set_idle). */
    void set_idle(std::int64_t idle_ns) const noexcept
    {
        nl_set_idle(handle, idle_ns);
    }

    /**
     * Checks commands as if they came from a collector, without executing them.
     *
     * @throws netlogger::error if a command is invalid
     */
    static void check(std::string_view commands)
    {
        if (nl_control_check(commands.data(), commands.size()) == NL_FAILED)
            throw error();
    }

    /** Executes commands (see nl_control). @throws netlogger::error if a command fails */
    void control(std::string_view commands) const
    {
        if (nl_control(handle, commands.data(), commands.size()) == NL_FAILED)
            throw error();
    }

    /** Sends all events and waits until they are sent. @throws netlogger::error if some events could not be sent */
    void flush() const
    {
        if (nl_flush(handle) == NL_FAILED)
            throw error();
    }

    /**
     * Flushes and closes the log, which is off afterwards. No other thread may be using the log.
     *
     * @return false if not all events were delivered; nl_error_message() states how many were not delivered, where they
     * are, and why
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

template <class Place, class... Names, class... Values>
span::span(const log &log, Place, const nl_context &parent, bool current,
           const field<Names, Values> &...fields) noexcept
{
    it.context = parent;
    const nl_span_place &place = Place::it;
    if (!detail::is_on(log.get(), nl_level(place.start[0].level)) ||
        __atomic_load_n(&place.start[0].off, __ATOMIC_RELAXED) ||
        __atomic_load_n(&place.start[1].off, __ATOMIC_RELAXED) || !nl_private_is_sampled(&parent))
        return;
    const nl_context from = parent; /* a copy, because the parent may be in this object */
    detail::begin(it, log.get(), &Place::it, &from, detail::capture(fields.value)...);
    if (it.log != nullptr && current) {
        is_current = true;
        previous = nl_context_attach(&it.context);
    }
}

/* ---- reading ---- */

/** A field of a record, which is valid until the reader's next record. */
class value
{
  public:
    /** Wraps a field of the library. */
    explicit value(const nl_field &field) : field(field)
    {
    }

    /** Returns the name of the field. */
    std::string_view name() const
    {
        return {field.name.data, field.name.size};
    }
    /** Returns the type of the value; text formats have only text. */
    nl_type type() const
    {
        return field.type;
    }

    /** Returns the value as ULM text. */
    std::string text() const
    {
        char scratch[NL_FIELD_TEXT_SIZE];
        nl_string text = nl_field_text(&field, scratch);
        return {text.data, text.size};
    }

    /** Returns the value as an integer. The result is empty if the value is not a 64-bit integer. */
    std::optional<std::int64_t> integer() const
    {
        std::int64_t number;
        return nl_field_int(&field, &number) ? std::optional(number) : std::nullopt;
    }
    /** Returns the value as a number. The result is empty if the value is not a number. */
    std::optional<double> number() const
    {
        double number;
        return nl_field_double(&field, &number) ? std::optional(number) : std::nullopt;
    }

  private:
    nl_field field;
};

/** A record. The results of its members are valid until the reader's next record. */
class record
{
  public:
    /** Wraps a record of the library. */
    explicit record(const nl_record *data = nullptr) : data(data)
    {
    }

    /** Returns the time in nanoseconds since 1970 UTC. */
    std::int64_t time_ns() const
    {
        return data->time_ns;
    }
    /** Returns the level, or NL_LEVEL_NONE. */
    nl_level level() const
    {
        return data->level;
    }
    /** Returns the host. The result is empty if the record has no host. */
    std::string_view host() const
    {
        return view(data->host);
    }
    /** Returns the program. The result is empty if the record has no program. */
    std::string_view prog() const
    {
        return view(data->prog);
    }
    /** Returns the name of the event. The result is empty if the record has no event. */
    std::string_view event() const
    {
        return view(data->event);
    }
    /** Returns the number of fields, not counting time, level, host, program and event. */
    std::size_t size() const
    {
        return data->field_count;
    }
    /** Returns the field at a position. The first position is 0. */
    value operator[](std::size_t place) const
    {
        return value(data->fields[place]);
    }

    /**
     * Returns the first field with this name, which may be the name of a standard field ("HOST", "DATE"). The result is
     * empty if the record lacks the field.
     */
    std::optional<value> find(const char *name) const
    {
        nl_field field;
        return nl_record_find(data, name, &field) ? std::optional(value(field)) : std::nullopt;
    }
    /** Returns the record as a line of text. @throws netlogger::error if the format is not text or memory runs out */
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
    /** Returns the record for the C interface. */
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

/** A copy of a record, valid as long as this object exists. */
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
    /** Empties the record and keeps its memory for the next copy. */
    void clear() noexcept
    {
        nl_record_clear(data.get());
    }
    /** Returns the copy. */
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
 * The records of a source, in order. The program can iterate over them once:
 *
 *   for (const netlogger::record &record : netlogger::reader("a.log", "LVL <= Warning"))
 *
 * Malformed input is skipped and counted (stats().malformed). Only one thread at a time may use a reader.
 */
class reader
{
  public:
    /**
     * Opens a source.
     *
     * @param source a file, "-" for standard input, or the URL of a collector: see nl_reader_open
     * @param where an expression that selects records (filter.h); "": all
     * @param follow wait at the end of a file for more records
     * @throws netlogger::error if the source cannot be opened or where is invalid
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

    /** Returns the next record, or nothing at the end. @throws netlogger::error if reading fails */
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

    /** Returns the counts so far, which are valid as long as the reader exists. */
    const nl_reader_stats &stats() const
    {
        return *nl_reader_get_stats(handle.get());
    }

    /** An input iterator over the remaining records. */
    class iterator
    {
      public:
        using iterator_category = std::input_iterator_tag; /**< Single pass. */
        using value_type = record;                         /**< A record. */
        using difference_type = std::ptrdiff_t;            /**< Required by the standard; not used. */
        using pointer = const record *;                    /**< A pointer to the present record. */
        using reference = const record &;                  /**< A reference to the present record. */

        /** Creates the end iterator. */
        iterator() = default;
        /** Reads the reader's next record. */
        explicit iterator(reader &from) : from(&from), now(from.next())
        {
        }
        /** Returns the record, which is valid until the next record. */
        reference operator*() const
        {
            return *now;
        }
        /** Returns the record's address. */
        pointer operator->() const
        {
            return &*now;
        }
        /** Reads the next record. @throws netlogger::error if reading fails */
        iterator &operator++()
        {
            now = from->next();
            return *this;
        }
        /** Reads the next record. @throws netlogger::error if reading fails */
        void operator++(int)
        {
            ++*this;
        }
        /** Returns true if both iterators are at the end, or if neither iterator is at the end. */
        bool operator==(const iterator &other) const
        {
            return now.has_value() == other.now.has_value();
        }
        /** Returns the opposite of ==. */
        bool operator!=(const iterator &other) const
        {
            return !(*this == other);
        }

      private:
        reader *from = nullptr;
        std::optional<record> now;
    };
    /** Reads the next record and returns an iterator at it. */
    iterator begin()
    {
        return iterator(*this);
    }
    /** Returns the end iterator. */
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

/* Calls a C function that reports items of type Item to a callback, and rethrows the callback's exception. */
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
 * A probe at the markers (NL_MARKER) whose names match a pattern (fnmatch(3)). The destructor detaches it. See
 * marker.h for the kinds of probes.
 */
class probe
{
  public:
    /** The function that calling() attaches. It is called in the thread that passes the marker, and must not throw. */
    using function = std::function<void(const char *marker, const nl_field *fields, std::size_t field_count)>;

    /** Logs each pass to log, which must outlive the probe. @throws netlogger::error if the pattern is empty or log off
     */
    static probe logging(const std::string &pattern, const netlogger::log &log, nl_level level = NL_USAGE)
    {
        nl_probe_options options = {};
        options.kind = NL_PROBE_LOG;
        options.pattern = pattern.c_str();
        options.log = log.get();
        options.level = level;
        return probe(options);
    }
    /** Counts passes. @throws netlogger::error if the pattern is empty */
    static probe counting(const std::string &pattern)
    {
        nl_probe_options options = {};
        options.kind = NL_PROBE_COUNT;
        options.pattern = pattern.c_str();
        return probe(options);
    }
    /** Measures the time between two markers. @throws netlogger::error if nl_marker_attach fails */
    static probe timing(const std::string &from, const std::string &to)
    {
        nl_probe_options options = {};
        options.kind = NL_PROBE_TIME;
        options.pattern = from.c_str();
        options.to = to.c_str();
        return probe(options);
    }
    /** Calls the function `each` at each pass. @throws netlogger::error if the pattern is empty */
    static probe calling(const std::string &pattern, function each)
    {
        auto kept = std::make_unique<function>(std::move(each));
        nl_probe_options options = {};
        options.kind = NL_PROBE_CALL;
        options.pattern = pattern.c_str();
        options.function = pass;
        options.user = kept.get();
        probe made(options);
        made.kept = std::move(kept);
        return made;
    }

    /** Moves other's probe to this object. */
    probe(probe &&other) noexcept : number(std::exchange(other.number, 0)), kept(std::move(other.kept))
    {
    }
    probe &operator=(probe &&other) = delete;
    /** Detaches the probe. Afterwards, no thread runs the probe. */
    ~probe()
    {
        if (number != 0)
            nl_marker_detach(number);
    }

    /** Returns the results so far. @throws netlogger::error if the probe is already detached */
    nl_probe_info read() const
    {
        nl_probe_info found = {};
        auto keep = [&](const nl_probe_info &info) {
            if (info.probe == number)
                found = info;
        };
        if (detail::for_each<nl_probe_info>(keep, nl_probe_list) != NL_OK)
            throw error();
        if (found.probe == 0)
            throw error("the probe is detached");
        found.pattern = found.to = nullptr; /* valid only in `keep` */
        return found;
    }

  private:
    explicit probe(const nl_probe_options &options) : number(nl_marker_attach(&options))
    {
        if (number == 0)
            throw error();
    }
    static void pass(void *user, const char *marker, const nl_field *fields, std::size_t field_count)
    {
        (*static_cast<const function *>(user))(marker, fields, field_count);
    }

    nl_probe number;
    std::unique_ptr<function> kept; /* for calling() */
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
 * Measures the cost of logging and calls each(const nl_event_cost &) for each kind of event (see nl_event_costs).
 *
 * @throws netlogger::error if the measurement fails
 */
template <class Each> void for_each_event_cost(Each each)
{
    if (detail::for_each<nl_event_cost>(each, nl_event_costs) != NL_OK)
        throw error();
}

/**
 * Delivers the events of ended programs and calls each(const nl_recovered &) for each of their logs.
 *
 * @return whether everything is delivered; otherwise nl_error_message() has the reason
 */
template <class Each> bool recover(const nl_recover_options &options, Each each)
{
    return detail::for_each<nl_recovered>(
               each, [&](auto report, void *user) { return nl_recover(&options, report, user); }) == NL_OK;
}

/* ---- time ---- */

/** Returns the current time in nanoseconds since 1970 UTC. */
inline std::int64_t now_ns()
{
    return nl_time_now_ns();
}
/** Parses a ULM DATE, an ISO 8601 time or seconds since 1970. @throws netlogger::error if text is invalid */
inline std::int64_t parse_time(std::string_view text)
{
    std::int64_t time_ns;
    if (nl_time_parse(text.data(), text.size(), NL_FRACTION_DECIMAL, &time_ns) != NL_OK)
        throw error();
    return time_ns;
}
/** Returns a time in nanoseconds since 1970 UTC as a ULM DATE. */
inline std::string format_time(std::int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    return std::string(text, nl_time_format_ulm(time_ns, text));
}

} // namespace netlogger

#endif
