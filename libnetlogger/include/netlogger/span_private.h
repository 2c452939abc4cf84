/*
 * The implementation of NL_SPAN, nl_span_begin and nl_span_end, which is compiled into programs. Programs must not use
 * these names; they may change with the library's major version.
 *
 * The start and the end of a span are events with sites, like those of NL_EVENT, whose first fields are PARENT.ID,
 * TRACE.ID and SPAN.ID. A root span uses a second site, which lacks PARENT.ID.
 */
#ifndef NETLOGGER_SPAN_PRIVATE_H
#define NETLOGGER_SPAN_PRIVATE_H

NL_BEGIN_DECLS

/* A place in the program with an nl_span_begin. The second site of each pair is for root spans. */
typedef struct nl_span_place {
    nl_event_site start[2];
    nl_event_site end[2]; /* sites of the end event without the program's fields */
} nl_span_place;

/* A place in the program with an nl_span_end. */
typedef struct nl_span_end_place {
    const char *const *names;   /* names of the end event's fields */
    const unsigned char *types; /* NL_RAW_... */
    unsigned field_count;
    struct nl_span_end_sites *first; /* sites for the first span that ended here, or NULL */
} nl_span_end_place;

/* The calling thread's current context. */
typedef struct nl_private_current_context {
    nl_context context;
    int status;  /* STATUS of the thread's innermost NL_SPAN */
    int carried; /* the context is sampled, so events get its IDs */
} nl_private_current_context;

extern NL_API __thread nl_private_current_context nl_private_current __attribute__((tls_model("initial-exec")));

/* The state of an NL_SPAN. If span.log is NULL, the end of the span only restores the status. */
typedef struct nl_private_scope {
    nl_span span;
    nl_context previous;
    int previous_status;
} nl_private_scope;

/*
 * Sets *span, and reserves *size bytes in the ring for its start. For a root span, first subtracts the size of
 * PARENT.ID from *size. Returns the position of the program's fields, or NULL if the event is lost or switched off.
 */
NL_API char *nl_private_span_begin(nl_span *span, nl_log *log, nl_span_place *place, const nl_context *parent,
                                   size_t *size, nl_ring_producer **ring);

/* Like nl_private_span_begin, but ends a span that is logged. */
NL_API char *nl_private_span_end(nl_span *span, nl_span_end_place *place, size_t *size, nl_ring_producer **ring);

/* Enter and leave the scope of scope->span. */
NL_API void nl_private_scope_enter(nl_private_scope *scope);
NL_API void nl_private_scope_leave(nl_private_scope *scope);

static inline const nl_context *nl_private_no_parent(void)
{
    static const nl_context none = {{0}, {0}, 0, {0}};
    return &none;
}

/* Returns whether spans with this parent are logged: the parent is sampled or empty. */
static inline int nl_private_is_sampled(const nl_context *parent)
{
    uint64_t id[2];
    memcpy(id, parent->trace_id, sizeof id);
    return (parent->flags & NL_CONTEXT_SAMPLED) != 0 || (id[0] | id[1]) == 0;
}

/*
 * For a span that is not logged, sets the members that other code may read: the context and the log. One call clears
 * log and parent_id, because a copy of the span loads both together, and two smaller stores would delay this load.
 */
static inline void nl_private_span_skip(nl_span *span, const nl_context *parent)
{
    span->context = *parent;
    __builtin_memset(NL_PRIVATE_CAST(char *, NL_PRIVATE_CAST(void *, span)) + offsetof(nl_span, parent_id), 0,
                     sizeof span->parent_id + sizeof span->log);
}

/*
 * Like nl_private_span_skip, for a scope. The log of its span is already NULL, and the program cannot reach the span's
 * other members.
 */
static inline void nl_private_scope_skip(const nl_span *span, const nl_context *parent)
{
    (void)span;
    (void)parent;
}

/*
 * Runs before the arguments are evaluated, because an exception or the thread's cancellation can end the scope during
 * the evaluation.
 */
static inline void nl_private_scope_prepare(nl_private_scope *scope)
{
    scope->span.log = 0;
    scope->previous_status = nl_private_current.status;
}

static inline void nl_private_scope_begin(nl_private_scope *scope)
{
    if (scope->span.log != 0)
        nl_private_scope_enter(scope);
}

static inline void nl_private_scope_end(nl_private_scope *scope)
{
    if (scope->span.log != 0)
        nl_private_scope_leave(scope);
    else if (nl_private_current.status != scope->previous_status)
        nl_private_current.status = scope->previous_status;
}

static inline nl_context nl_context_current(void)
{
    return nl_private_current.context;
}

static inline void nl_span_set_status(int status)
{
    nl_private_current.status = status;
}

NL_END_DECLS

enum {
    NL_PRIVATE_SPAN_HEAD =
        sizeof(nl_event_header) + 8 + 16 + 8, /* size of the start event up to the program's fields */
    NL_PRIVATE_SPAN_END_HEAD = NL_PRIVATE_SPAN_HEAD + sizeof(int32_t), /* size of the end event up to these fields */
};

#define NL_PRIVATE_SITE(event, names, types, first, level)                                                             \
    {                                                                                                                  \
        event, (names) + (first), (types) + (first), sizeof(types) - 1 - (first), (level), 0, 0, 0                     \
    }

#define NL_PRIVATE_SPAN_odd(...)                                                                                       \
    NL_PRIVATE_WRONG("nl_span_begin(log, level, name, parent, field, value, ...): a field name without a value")
#define NL_PRIVATE_SPAN_many(...) NL_PRIVATE_WRONG("a span can have at most 16 fields")

/*
 * Like NL_PRIVATE_EVENT_pairs, defines static sites, checks the gate, evaluates the values, computes their size and
 * copies them. skip(span, parent) sets a span that is not logged.
 */
#define NL_PRIVATE_SPAN_pairs(each, span, skip, log_given, level_given, span_name, parent_given, ...)                  \
    do {                                                                                                               \
        NL_PRIVATE_STATIC_ASSERT(__builtin_constant_p(level_given), "the level of a span must be a constant");         \
        NL_PRIVATE_STATIC_ASSERT((level_given) >= NL_EMERGENCY && (level_given) <= NL_DEBUG,                           \
                                 "the level of a span must be from NL_EMERGENCY to NL_DEBUG");                         \
        NL_PRIVATE_STATIC_ASSERT(sizeof("" span_name) > 1, "a span needs a name");                                     \
        each(NL_PRIVATE_CHECK_IT, __VA_ARGS__) static const char *const nl_names_[] = {                                \
            "PARENT.ID", "TRACE.ID", "SPAN.ID", each(NL_PRIVATE_NAME_OF, __VA_ARGS__) 0};                              \
        static const unsigned char nl_types_[] = {NL_RAW_SPAN_ID, NL_RAW_TRACE_ID, NL_RAW_SPAN_ID,                     \
                                                  each(NL_PRIVATE_TYPE_OF, __VA_ARGS__) 0};                            \
        static const char *const nl_end_names_[] = {"PARENT.ID", "TRACE.ID", "SPAN.ID", "STATUS", 0};                  \
        static const unsigned char nl_end_types_[] = {NL_RAW_SPAN_ID, NL_RAW_TRACE_ID, NL_RAW_SPAN_ID, NL_RAW_INT32,   \
                                                      0};                                                              \
        static nl_span_place nl_place_ = {                                                                             \
            {NL_PRIVATE_SITE("" span_name ".start", nl_names_, nl_types_, 0, level_given),                             \
             NL_PRIVATE_SITE("" span_name ".start", nl_names_, nl_types_, 1, level_given)},                            \
            {NL_PRIVATE_SITE("" span_name ".end", nl_end_names_, nl_end_types_, 0, level_given),                       \
             NL_PRIVATE_SITE("" span_name ".end", nl_end_names_, nl_end_types_, 1, level_given)}};                     \
        nl_log *nl_log_ = (log_given);                                                                                 \
        nl_log_gate *nl_gate_ = NL_PRIVATE_CAST(nl_log_gate *, NL_PRIVATE_CAST(void *, nl_log_));                      \
        const nl_context *nl_parent_ = (parent_given);                                                                 \
        if (nl_parent_ == 0)                                                                                           \
            nl_parent_ = &nl_private_current.context;                                                                  \
        if (nl_gate_ != 0 &&                                                                                           \
            NL_PRIVATE_CAST(int, level_given) <= __atomic_load_n(&nl_gate_->threshold, __ATOMIC_RELAXED) &&            \
            !__atomic_load_n(&nl_place_.start[0].off, __ATOMIC_RELAXED) &&                                             \
            !__atomic_load_n(&nl_place_.start[1].off, __ATOMIC_RELAXED) && nl_private_is_sampled(nl_parent_)) {        \
            nl_ring_producer *nl_ring_;                                                                                \
            each(NL_PRIVATE_CAPTURE_IT, __VA_ARGS__) size_t nl_size_ =                                                 \
                NL_PRIVATE_SPAN_HEAD each(NL_PRIVATE_ADD_SIZE, __VA_ARGS__);                                           \
            char *nl_at_ = nl_private_span_begin(&(span), nl_log_, &nl_place_, nl_parent_, &nl_size_, &nl_ring_);      \
            if (nl_at_ != 0) {                                                                                         \
                each(NL_PRIVATE_PUT_IT, __VA_ARGS__) nl_private_commit(nl_ring_, nl_size_);                            \
            }                                                                                                          \
        } else {                                                                                                       \
            skip(&(span), nl_parent_);                                                                                 \
        }                                                                                                              \
    } while (0)

#define NL_PRIVATE_SPAN_END_odd(...)                                                                                   \
    NL_PRIVATE_WRONG("nl_span_end(span, field, value, ...): a field name without a value")
#define NL_PRIVATE_SPAN_END_many(...) NL_PRIVATE_WRONG("a span can have at most 16 fields")
#define NL_PRIVATE_SPAN_END_pairs(each, span_given, ...)                                                               \
    do {                                                                                                               \
        each(NL_PRIVATE_CHECK_IT, __VA_ARGS__) static const char *const nl_names_[] = {                                \
            "PARENT.ID", "TRACE.ID", "SPAN.ID", "STATUS", each(NL_PRIVATE_NAME_OF, __VA_ARGS__) 0};                    \
        static const unsigned char nl_types_[] = {NL_RAW_SPAN_ID, NL_RAW_TRACE_ID, NL_RAW_SPAN_ID, NL_RAW_INT32,       \
                                                  each(NL_PRIVATE_TYPE_OF, __VA_ARGS__) 0};                            \
        static nl_span_end_place nl_place_ = {nl_names_, nl_types_, sizeof nl_types_ - 1, 0};                          \
        nl_span *nl_span_ = (span_given);                                                                              \
        if (nl_span_ != 0 && nl_span_->log != 0) {                                                                     \
            nl_ring_producer *nl_ring_;                                                                                \
            each(NL_PRIVATE_CAPTURE_IT, __VA_ARGS__) size_t nl_size_ =                                                 \
                NL_PRIVATE_SPAN_END_HEAD each(NL_PRIVATE_ADD_SIZE, __VA_ARGS__);                                       \
            char *nl_at_ = nl_private_span_end(nl_span_, &nl_place_, &nl_size_, &nl_ring_);                            \
            if (nl_at_ != 0) {                                                                                         \
                each(NL_PRIVATE_PUT_IT, __VA_ARGS__) nl_private_commit(nl_ring_, nl_size_);                            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* The variable names contain the line number, so that nested scopes do not cause warnings about hidden variables. */
#define NL_PRIVATE_SCOPE(log, level, ...)                                                                              \
    NL_PRIVATE_SCOPE_IN(NL_PRIVATE_JOIN(nl_scope_, __LINE__), NL_PRIVATE_JOIN(nl_inside_, __LINE__),                   \
                        NL_PRIVATE_CALL(NL_PRIVATE_JOIN(NL_PRIVATE_SPAN_, NL_PRIVATE_FORM(__VA_ARGS__)),               \
                                        NL_PRIVATE_JOIN(NL_PRIVATE_EACH_, NL_PRIVATE_PAIRS(__VA_ARGS__)),              \
                                        NL_PRIVATE_JOIN(nl_scope_, __LINE__).span, nl_private_scope_skip, log, level,  \
                                        NL_PRIVATE_SCOPE_ARGUMENTS(__VA_ARGS__, 0)))
#define NL_PRIVATE_CALL(macro, ...) macro(__VA_ARGS__)
#define NL_PRIVATE_SCOPE_ARGUMENTS(name, ...) name, 0, __VA_ARGS__
#define NL_PRIVATE_SCOPE_IN(scope, inside, begin)                                                                      \
    for (nl_private_scope scope __attribute__((cleanup(nl_private_scope_end))), *inside = __extension__({              \
             nl_private_scope_prepare(&scope);                                                                         \
             begin;                                                                                                    \
             nl_private_scope_begin(&scope);                                                                           \
             &scope;                                                                                                   \
         });                                                                                                           \
         inside != 0; inside = 0)

#endif
