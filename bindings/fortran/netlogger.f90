!> NetLogger in Fortran 2008, on top of libnetlogger.
!>
!>     use netlogger
!>     type(nl_log) :: log
!>     call log%open("testprog", "x-netlog://dolly.lbl.gov")
!>     call log%write("WriteData", "SEND.SZ", size, "FILE", name)
!>     call log%close()
!>
!> Writing. An event has a name, optionally a level, and up to 16 fields with a name and a value: an integer or real of any
!> kind, a logical, a character, or nl_exact(character). Trailing blanks of a character are removed, except with nl_exact. Values
!> of other types become the text "(unknown type)". Any number of threads may use a log, and a child of fork may continue to
!> use it. Writing never fails: the log counts and reports lost events. A collector that is not running is not an error: the library
!> keeps the events, prints one line on standard error, and tries again.
!>
!> open, flush, close and the reader's procedures have the optional arguments stat, which is 0 on success, and errmsg, the
!> reason for a failure. Without stat, a failure stops the program. There is one exception: if close fails, the library prints
!> what is not delivered, and the program continues.
!>
!> Reading.
!>
!>     type(nl_reader) :: reader
!>     call reader%open("all.log", where="LVL <= Warning")
!>     do while (reader%next())
!>         print *, reader%event(), reader%get("SEND.SZ")
!>     end do
!>     call reader%close()
!>
!> Only one thread at a time may use a reader.
!>
!> Spans.
!>
!>     type(nl_span) :: span
!>     call nl_attach(header)                          ! the context of a request: its traceparent
!>     call span%begin(log, "Query", "SQL", text)      ! Query.start
!>     call log%write("Row", "N", 1)                   ! has the ID of the span
!>     header = nl_traceparent()                       ! for a request to another server, or another thread
!>     call span%end("ROWS", n)                        ! Query.end
!>
!> The same thread must call begin and end. Between these calls, the span is the thread's current context. End nested spans in
!> reverse order.
module netlogger
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64, real128, error_unit
    implicit none
    private

    !> Levels, from the most to the least urgent.
    integer, parameter, public :: NL_EMERGENCY = 1, NL_ALERT = 2, NL_ERROR = 3, NL_WARNING = 4, NL_AUTH = 5, &
        NL_SECURITY = 6, NL_USAGE = 7, NL_SYSTEM = 8, NL_IMPORTANT = 9, NL_DEBUG = 10

    !> A log. Copies refer to the same log; close it once.
    type, public :: nl_log
        private
        type(c_ptr) :: handle = c_null_ptr
    contains
        !> Opens url; default: $NETLOGGER_DEST. If logging is off or there is no destination, writing has no effect.
        procedure :: open => log_open
        !> Writes an event of level Usage: write(event, name, value, ...).
        procedure :: write => log_write
        !> Writes an event of another level: write_level(level, event, name, value, ...).
        procedure :: write_level => log_write_level
        !> Sets the threshold: the log drops less urgent events.
        procedure :: set_level => log_set_level
        !> Sends all events and waits until they are sent.
        procedure :: flush => log_flush
        !> Flushes and closes the log. The log is closed even on failure.
        procedure :: close => log_close
        !> Returns whether the log is open.
        procedure :: is_open => log_is_open
    end type

    !> A span: the events name.start and name.end with the IDs of the trace, the span and its parent. A span that is off, or
    !> whose trace is not sampled, writes nothing. The log must be open until the span ends.
    type, public :: nl_span
        private
        integer(c_int64_t) :: state(12) = 0
        type(c_ptr) :: log = c_null_ptr
        character(:), allocatable :: name
        !> The level of both events.
        integer, public :: level = NL_USAGE
        !> STATUS of name.end; 0 is success.
        integer, public :: status = 0
    contains
        !> Begins the span as a child of the current context: begin(log, name, field, value, ...).
        procedure :: begin => span_begin
        !> Ends the span: end(field, value, ...). Call `end` once.
        procedure :: end => span_end
    end type

    !> The records of a source: a file, "-" for standard input, or a collector (x-netlog://HOST).
    type, public :: nl_reader
        private
        type(c_ptr) :: handle = c_null_ptr, filter = c_null_ptr, record = c_null_ptr
    contains
        !> Opens source. where is an expression that selects records. With follow, waits for more records at the end.
        procedure :: open => reader_open
        !> Reads the next record; returns .false. at the end.
        procedure :: next => reader_next
        !> Return the record's event, host, program, and time in nanoseconds since 1970 UTC.
        procedure :: event => reader_event
        procedure :: host => reader_host
        procedure :: prog => reader_prog
        procedure :: time_ns => reader_time_ns
        !> Returns the value of a field as text; "" and found=.false. if there is no such field.
        procedure :: get => reader_get
        procedure, private :: get_integer => reader_get_integer
        procedure, private :: get_real => reader_get_real
        !> Returns the value of a field as a number: get_number(name, value, found). value is unchanged if the field is not
        !> a number.
        generic :: get_number => get_integer, get_real
        !> Closes the reader; may be called again.
        procedure :: close => reader_close
    end type

    !> A character whose trailing blanks are logged.
    type, public :: nl_exact
        character(:), allocatable :: text
    end type

    public :: nl_attach, nl_traceparent, nl_join_tracestate
    interface nl_exact
        module procedure exact
    end interface

    ! Declarations of <netlogger.h>.
    type, bind(c) :: c_string
        type(c_ptr) :: data = c_null_ptr
        integer(c_size_t) :: size = 0
    end type
    type, bind(c) :: c_field
        type(c_string) :: name
        integer(c_int) :: kind = 0
        type(c_string) :: value
    end type

    interface
        function nl_open(prog, url) bind(c)
            import :: c_ptr
            type(c_ptr), value :: prog, url
            type(c_ptr) :: nl_open
        end function
        function nl_flush(log) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: log
            integer(c_int) :: nl_flush
        end function
        function nl_close(log) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: log
            integer(c_int) :: nl_close
        end function
        subroutine nl_set_level(log, level) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: log
            integer(c_int), value :: level
        end subroutine
        function nl_write_record(log, record) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: log, record
            integer(c_int) :: nl_write_record
        end function
        function nl_record_new() bind(c)
            import :: c_ptr
            type(c_ptr) :: nl_record_new
        end function
        subroutine nl_record_free(record) bind(c)
            import :: c_ptr
            type(c_ptr), value :: record
        end subroutine
        subroutine nl_record_set_level(record, level) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: record
            integer(c_int), value :: level
        end subroutine
        subroutine nl_record_set_event(record, event, size) bind(c)
            import :: c_ptr, c_size_t, c_char
            type(c_ptr), value :: record
            character(kind=c_char), intent(in) :: event(*)
            integer(c_size_t), value :: size
        end subroutine
        subroutine nl_fortran_span_begin(span, log, record) bind(c)
            import :: c_ptr, c_int64_t
            integer(c_int64_t), intent(inout) :: span(12)
            type(c_ptr), value :: log, record
        end subroutine
        subroutine nl_fortran_span_end(span, log, record, status) bind(c)
            import :: c_ptr, c_int, c_int64_t
            integer(c_int64_t), intent(inout) :: span(12)
            type(c_ptr), value :: log, record
            integer(c_int), value :: status
        end subroutine
        subroutine nl_fortran_attach(traceparent) bind(c)
            import :: c_ptr
            type(c_ptr), value :: traceparent
        end subroutine
        function nl_fortran_traceparent(text) bind(c)
            import :: c_int, c_char
            character(kind=c_char), intent(out) :: text(*)
            integer(c_int) :: nl_fortran_traceparent
        end function
        function nl_fortran_tracestate_append(state, text, size) bind(c)
            import :: c_bool, c_char, c_size_t
            character(kind=c_char), intent(inout) :: state(*)
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: size
            logical(c_bool) :: nl_fortran_tracestate_append
        end function
        subroutine nl_fortran_record_add_string(record, name, text, size) bind(c)
            import :: c_ptr, c_size_t, c_char
            type(c_ptr), value :: record
            character(kind=c_char), intent(in) :: name(*), text(*)
            integer(c_size_t), value :: size
        end subroutine
        subroutine nl_fortran_record_add_int(record, name, number) bind(c)
            import :: c_ptr, c_int64_t, c_char
            type(c_ptr), value :: record
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), value :: number
        end subroutine
        subroutine nl_fortran_record_add_double(record, name, number) bind(c)
            import :: c_ptr, c_double, c_char
            type(c_ptr), value :: record
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: number
        end subroutine
        subroutine nl_fortran_record_add_bool(record, name, flag) bind(c)
            import :: c_ptr, c_bool, c_char
            type(c_ptr), value :: record
            character(kind=c_char), intent(in) :: name(*)
            logical(c_bool), value :: flag
        end subroutine
        function nl_fortran_reader_open(url, follow) bind(c)
            import :: c_ptr, c_char, c_bool
            character(kind=c_char), intent(in) :: url(*)
            logical(c_bool), value :: follow
            type(c_ptr) :: nl_fortran_reader_open
        end function
        subroutine nl_reader_close(reader) bind(c)
            import :: c_ptr
            type(c_ptr), value :: reader
        end subroutine
        function nl_reader_next(reader, record) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: reader
            type(c_ptr), intent(out) :: record
            integer(c_int) :: nl_reader_next
        end function
        function nl_filter_parse(text) bind(c)
            import :: c_ptr, c_char
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr) :: nl_filter_parse
        end function
        subroutine nl_filter_free(filter) bind(c)
            import :: c_ptr
            type(c_ptr), value :: filter
        end subroutine
        function nl_filter_matches(filter, record) bind(c)
            import :: c_ptr, c_bool
            type(c_ptr), value :: filter, record
            logical(c_bool) :: nl_filter_matches
        end function
        function nl_record_find(record, name, field) bind(c)
            import :: c_ptr, c_bool, c_char, c_field
            type(c_ptr), value :: record
            character(kind=c_char), intent(in) :: name(*)
            type(c_field), intent(out) :: field
            logical(c_bool) :: nl_record_find
        end function
        function nl_field_text(field, scratch) bind(c)
            import :: c_string, c_field, c_char
            type(c_field), intent(in) :: field
            character(kind=c_char) :: scratch(*)
            type(c_string) :: nl_field_text
        end function
        function nl_field_int(field, number) bind(c)
            import :: c_field, c_int64_t, c_bool
            type(c_field), intent(in) :: field
            integer(c_int64_t) :: number
            logical(c_bool) :: nl_field_int
        end function
        function nl_field_double(field, number) bind(c)
            import :: c_field, c_double, c_bool
            type(c_field), intent(in) :: field
            real(c_double) :: number
            logical(c_bool) :: nl_field_double
        end function
        function nl_error_message() bind(c)
            import :: c_ptr
            type(c_ptr) :: nl_error_message
        end function
        function c_strlen(text) bind(c, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: c_strlen
        end function
    end interface

    integer, parameter :: STATUS_OK = 0, STATUS_FAILED = -1, FIELD_TEXT_SIZE = 40

contains

    !> Returns the library's message for this thread's latest failure.
    function last_error() result(text)
        character(:), allocatable :: text
        type(c_ptr) :: message
        message = nl_error_message()
        text = bytes_at(message, c_strlen(message))
    end function

    function bytes_at(data, size) result(text)
        type(c_ptr), intent(in) :: data
        integer(c_size_t), intent(in) :: size
        character(:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        integer(c_size_t) :: i
        allocate (character(size) :: text)
        if (size == 0 .or. .not. c_associated(data)) return
        call c_f_pointer(data, bytes, [size])
        do i = 1, size
            text(i:i) = bytes(i)
        end do
    end function

    !> Stores a result in stat and errmsg. Without stat, a failure ends the program.
    subroutine conclude(failed, stat, errmsg)
        logical, intent(in) :: failed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        if (present(stat)) stat = merge(1, 0, failed)
        if (.not. failed) return
        if (present(errmsg)) errmsg = last_error()
        if (present(stat)) return
        write (error_unit, "(2a)") "netlogger: ", last_error()
        error stop 1
    end subroutine

    function exact(text)
        character(*), intent(in) :: text
        type(nl_exact) :: exact
        exact%text = text
    end function

    ! ---- writing ----

    subroutine log_open(self, prog, url, stat, errmsg)
        class(nl_log), intent(inout) :: self
        character(*), intent(in) :: prog
        character(*), intent(in), optional :: url
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(len_trim(prog) + 1, kind=c_char), target :: prog_text
        character(:, kind=c_char), allocatable, target :: url_text
        character(:), allocatable :: reason
        logical :: failed
        integer :: ignored
        prog_text = trim(prog)//c_null_char
        if (present(url)) then
            url_text = trim(url)//c_null_char
            self%handle = nl_open(c_loc(prog_text), c_loc(url_text))
        else
            self%handle = nl_open(c_loc(prog_text), c_null_ptr)
        end if
        ! Without a message, logging is off.
        failed = .not. c_associated(self%handle)
        reason = last_error()
        failed = failed .and. len(reason) > 0
        call conclude(failed, ignored, errmsg)
        if (present(stat)) stat = ignored
        if (failed .and. .not. present(stat)) error stop 1 ! the library has printed the reason
    end subroutine

    logical function log_is_open(self)
        class(nl_log), intent(in) :: self
        log_is_open = c_associated(self%handle)
    end function

    subroutine log_write(self, event, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        class(nl_log), intent(in) :: self
        character(*), intent(in) :: event
        character(*), intent(in), optional :: n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16
        class(*), intent(in), optional :: v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16
        call self%write_level(NL_USAGE, event, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
    end subroutine

    subroutine log_write_level(self, level, event, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        class(nl_log), intent(in) :: self
        integer, intent(in) :: level
        character(*), intent(in) :: event
        character(*), intent(in), optional :: n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16
        class(*), intent(in), optional :: v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16
        type(c_ptr) :: record
        integer(c_int) :: ignored
        if (.not. c_associated(self%handle)) return
        record = nl_record_new()
        call nl_record_set_level(record, int(level, c_int))
        call nl_record_set_event(record, event, len_trim(event, c_size_t))
        call add_all(record, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        ignored = nl_write_record(self%handle, record) ! the log counts losses
        call nl_record_free(record)
    end subroutine

    subroutine add_all(record, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        type(c_ptr), intent(in) :: record
        character(*), intent(in), optional :: n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16
        class(*), intent(in), optional :: v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16
        call add(record, n1, v1)
        call add(record, n2, v2)
        call add(record, n3, v3)
        call add(record, n4, v4)
        call add(record, n5, v5)
        call add(record, n6, v6)
        call add(record, n7, v7)
        call add(record, n8, v8)
        call add(record, n9, v9)
        call add(record, n10, v10)
        call add(record, n11, v11)
        call add(record, n12, v12)
        call add(record, n13, v13)
        call add(record, n14, v14)
        call add(record, n15, v15)
        call add(record, n16, v16)
    end subroutine

    subroutine add(record, name, value)
        type(c_ptr), intent(in) :: record
        character(*), intent(in), optional :: name
        class(*), intent(in), optional :: value
        character(:, kind=c_char), allocatable :: key
        if (.not. present(name) .or. .not. present(value)) return
        key = trim(name)//c_null_char
        select type (value)
        type is (integer(int32))
            call nl_fortran_record_add_int(record, key, int(value, c_int64_t))
        type is (integer(int64))
            call nl_fortran_record_add_int(record, key, value)
        type is (real(real64))
            call nl_fortran_record_add_double(record, key, value)
        type is (character(*))
            call nl_fortran_record_add_string(record, key, value, len_trim(value, c_size_t))
        type is (nl_exact)
            call nl_fortran_record_add_string(record, key, value%text, len(value%text, c_size_t))
        class default
            call add_rare(record, key, value)
        end select
    end subroutine

    subroutine add_rare(record, key, value)
        type(c_ptr), intent(in) :: record
        character(*, kind=c_char), intent(in) :: key
        class(*), intent(in) :: value
        character(*), parameter :: UNKNOWN = "(unknown type)"
        select type (value)
        type is (integer(int8))
            call nl_fortran_record_add_int(record, key, int(value, c_int64_t))
        type is (integer(int16))
            call nl_fortran_record_add_int(record, key, int(value, c_int64_t))
        type is (real(real32))
            call nl_fortran_record_add_double(record, key, real(value, c_double))
        type is (real(real128))
            call nl_fortran_record_add_double(record, key, real(value, c_double))
        type is (logical)
            call nl_fortran_record_add_bool(record, key, logical(value, c_bool))
        type is (logical(c_bool))
            call nl_fortran_record_add_bool(record, key, value)
        class default
            call nl_fortran_record_add_string(record, key, UNKNOWN, len(UNKNOWN, c_size_t))
        end select
    end subroutine

    ! ---- spans ----

    function span_record(self) result(record)
        class(nl_span), intent(in) :: self
        type(c_ptr) :: record
        record = nl_record_new()
        call nl_record_set_level(record, int(self%level, c_int))
        call nl_record_set_event(record, self%name, len(self%name, c_size_t))
    end function

    subroutine span_begin(self, log, name, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        class(nl_span), intent(inout) :: self
        type(nl_log), intent(in) :: log
        character(*), intent(in) :: name
        character(*), intent(in), optional :: n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16
        class(*), intent(in), optional :: v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16
        type(c_ptr) :: record
        self%log = log%handle
        self%name = trim(name)
        self%status = 0
        self%state = 0
        if (.not. c_associated(self%log)) return
        record = span_record(self)
        call add_all(record, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        call nl_fortran_span_begin(self%state, self%log, record)
        call nl_record_free(record)
    end subroutine

    subroutine span_end(self, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        class(nl_span), intent(inout) :: self
        character(*), intent(in), optional :: n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16
        class(*), intent(in), optional :: v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16
        type(c_ptr) :: record
        if (.not. c_associated(self%log)) return
        record = span_record(self)
        call add_all(record, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7, n8, v8, &
            n9, v9, n10, v10, n11, v11, n12, v12, n13, v13, n14, v14, n15, v15, n16, v16)
        call nl_fortran_span_end(self%state, self%log, record, int(self%status, c_int))
        call nl_record_free(record)
        self%log = c_null_ptr
    end subroutine

    !> Makes the context of a traceparent header the thread's current context. If the header is "" or invalid, the thread then
    !> has no current context. Without traceparent, uses the environment variable TRACEPARENT.
    subroutine nl_attach(traceparent)
        character(*), intent(in), optional :: traceparent
        character(:, kind=c_char), allocatable, target :: text
        if (present(traceparent)) then
            text = traceparent//c_null_char
            call nl_fortran_attach(c_loc(text))
        else
            call nl_fortran_attach(c_null_ptr)
        end if
    end subroutine

    !> Returns the traceparent of the thread's current context, for requests, other threads and new processes; "" if no context
    !> is current.
    function nl_traceparent() result(text)
        character(:), allocatable :: text
        character(kind=c_char) :: bytes(56)
        integer :: i
        allocate (character(nl_fortran_traceparent(bytes)) :: text)
        do i = 1, len(text)
            text(i:i) = bytes(i)
        end do
    end function

    !> Joins the values of tracestate headers into one value to pass on; "" if one of them is invalid.
    function nl_join_tracestate(headers) result(text)
        character(*), intent(in) :: headers(:)
        character(:), allocatable :: text
        character(kind=c_char) :: bytes(1024)
        integer :: i, length
        bytes = c_null_char
        do i = 1, size(headers)
            if (.not. nl_fortran_tracestate_append(bytes, headers(i), len_trim(headers(i), c_size_t))) exit
        end do
        length = 0
        do while (bytes(length + 1) /= c_null_char)
            length = length + 1
        end do
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = bytes(i)
        end do
    end function

    subroutine log_set_level(self, level)
        class(nl_log), intent(in) :: self
        integer, intent(in) :: level
        call nl_set_level(self%handle, int(level, c_int))
    end subroutine

    subroutine log_flush(self, stat, errmsg)
        class(nl_log), intent(in) :: self
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call conclude(nl_flush(self%handle) == STATUS_FAILED, stat, errmsg)
    end subroutine

    subroutine log_close(self, stat, errmsg)
        class(nl_log), intent(inout) :: self
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_ptr) :: handle
        integer :: ignored
        handle = self%handle
        self%handle = c_null_ptr
        ! Without stat, the program continues: the library has printed what is not delivered.
        call conclude(nl_close(handle) == STATUS_FAILED, ignored, errmsg)
        if (present(stat)) stat = ignored
    end subroutine

    ! ---- reading ----

    subroutine reader_open(self, source, where, follow, stat, errmsg)
        class(nl_reader), intent(inout) :: self
        character(*), intent(in) :: source
        character(*), intent(in), optional :: where
        logical, intent(in), optional :: follow
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        if (present(where)) self%filter = nl_filter_parse(trim(where)//c_null_char)
        if (.not. present(where) .or. c_associated(self%filter)) then
            self%handle = open_source(trim(source)//c_null_char, follow)
        end if
        call conclude(.not. c_associated(self%handle), stat, errmsg)
    end subroutine

    function open_source(source, follow) result(handle)
        character(*, kind=c_char), intent(in) :: source
        logical, intent(in), optional :: follow
        type(c_ptr) :: handle
        logical(c_bool) :: wait
        wait = .false.
        if (present(follow)) wait = follow
        handle = nl_fortran_reader_open(source, wait)
    end function

    logical function reader_next(self, stat, errmsg)
        class(nl_reader), intent(inout) :: self
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: status
        reader_next = .false.
        if (.not. c_associated(self%handle)) return
        do
            status = nl_reader_next(self%handle, self%record)
            if (status /= STATUS_OK) exit
            reader_next = .not. c_associated(self%filter)
            if (.not. reader_next) reader_next = nl_filter_matches(self%filter, self%record)
            if (reader_next) exit
        end do
        if (.not. reader_next) self%record = c_null_ptr
        call conclude(status == STATUS_FAILED, stat, errmsg)
    end function

    !> A field as the library found it; found is .false. if there is no such field, or no record.
    function field_of(self, name, found) result(field)
        class(nl_reader), intent(in) :: self
        character(*), intent(in) :: name
        logical, intent(out) :: found
        type(c_field) :: field
        found = c_associated(self%record)
        if (found) found = nl_record_find(self%record, trim(name)//c_null_char, field)
    end function

    function reader_get(self, name, found) result(text)
        class(nl_reader), intent(in) :: self
        character(*), intent(in) :: name
        logical, intent(out), optional :: found
        character(:), allocatable :: text
        type(c_field) :: field
        type(c_string) :: view
        character(kind=c_char), target :: scratch(FIELD_TEXT_SIZE)
        logical :: has
        field = field_of(self, name, has)
        text = ""
        if (has) then
            view = nl_field_text(field, scratch)
            text = bytes_at(view%data, view%size)
        end if
        if (present(found)) found = has
    end function

    subroutine reader_get_integer(self, name, value, found)
        class(nl_reader), intent(in) :: self
        character(*), intent(in) :: name
        integer(int64), intent(inout) :: value
        logical, intent(out), optional :: found
        type(c_field) :: field
        logical :: has
        field = field_of(self, name, has)
        if (has) has = nl_field_int(field, value)
        if (present(found)) found = has
    end subroutine

    subroutine reader_get_real(self, name, value, found)
        class(nl_reader), intent(in) :: self
        character(*), intent(in) :: name
        real(real64), intent(inout) :: value
        logical, intent(out), optional :: found
        type(c_field) :: field
        logical :: has
        field = field_of(self, name, has)
        if (has) has = nl_field_double(field, value)
        if (present(found)) found = has
    end subroutine

    function reader_event(self) result(text)
        class(nl_reader), intent(in) :: self
        character(:), allocatable :: text
        text = self%get("NL.EVNT")
    end function

    function reader_host(self) result(text)
        class(nl_reader), intent(in) :: self
        character(:), allocatable :: text
        text = self%get("HOST")
    end function

    function reader_prog(self) result(text)
        class(nl_reader), intent(in) :: self
        character(:), allocatable :: text
        text = self%get("PROG")
    end function

    function reader_time_ns(self) result(time)
        class(nl_reader), intent(in) :: self
        integer(int64) :: time
        time = 0
        call self%get_integer("DATE", time)
    end function

    subroutine reader_close(self)
        class(nl_reader), intent(inout) :: self
        call nl_reader_close(self%handle)
        call nl_filter_free(self%filter)
        self%handle = c_null_ptr
        self%filter = c_null_ptr
        self%record = c_null_ptr
    end subroutine
end module
