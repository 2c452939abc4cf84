! The spans of README.md in Fortran: gfortran -I.../netlogger/fortran spans.f90 -lnetlogger-fortran -lnetlogger
program spans
    use netlogger
    implicit none
    type(nl_log) :: log
    type(nl_span) :: request, query, copy
    character(1000) :: url

    call get_command_argument(1, url)
    call log%open("spans", url)
    call request%begin(log, "Request", "ID", 7)
    call query%begin(log, "Query", "SQL", "SELECT 1")
    call log%write("Row", "N", 1)
    query%status = 3
    call query%end()
    call copy%begin(log, "Copy")
    call copy%end("BYTES", 700)
    call log%write("Reply")
    call request%end()
    call log%write("Idle")
    call log%close()
end program
