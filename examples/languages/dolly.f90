! The example dolly of README.md in Fortran: gfortran -I.../netlogger/fortran dolly.f90 -lnetlogger-fortran -lnetlogger
program dolly
    use netlogger
    implicit none
    type(nl_log) :: log
    character(200) :: host = "dolly.lbl.gov", port = "14830"
    integer :: size = 49332

    if (command_argument_count() > 0) call get_command_argument(1, host)
    if (command_argument_count() > 1) call get_command_argument(2, port)
    call log%open("testprog", "x-netlog://"//trim(host)//":"//port)
    call log%write("WriteData", "SEND.SZ", size)
    call log%close()
end program
