! Measures an event with three fields in Fortran: events EVENTS PATH. Prints the time per call in bursts, and without a pause.
program events
    use netlogger
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: iso_fortran_env, only: int64, real64
    implicit none
    interface
        integer(c_int) function usleep(microseconds) bind(c)
            import :: c_int
            integer(c_int), value :: microseconds
        end function
    end interface
    integer, parameter :: BURST = 4096, BURSTS = 31
    type(nl_log) :: log
    character(1000) :: argument
    character(23) :: files(0:63)
    real(real64) :: took(BURSTS), other
    integer :: n, i, k
    integer(c_int) :: ignored

    call get_command_argument(1, argument)
    read (argument, *) n
    call get_command_argument(2, argument)
    do i = 0, 63
        write (files(i), "(a, i4.4)") "/data/run-17/block-", i + 10
    end do
    call log%open("prog", "file://"//trim(argument)//"?format=nlb&policy=block")
    other = each(20000)
    do i = 1, BURSTS
        ignored = usleep(10000_c_int)
        took(i) = each(BURST)
    end do
    do i = 1, BURSTS ! the median will be in the middle
        do k = i + 1, BURSTS
            if (took(k) < took(i)) took([i, k]) = took([k, i])
        end do
    end do
    print *, took(BURSTS/2 + 1), each(n)
    call log%close()

contains

    function each(count) result(ns)
        integer, intent(in) :: count
        real(real64) :: ns
        integer(int64) :: begin, end, rate
        integer :: i
        call system_clock(begin, rate)
        do i = 1, count
            call log%write("WriteData", "SEND.SZ", i, "FILE", files(iand(i, 63)), "SECONDS", 0.25d0)
        end do
        call system_clock(end)
        ns = real(end - begin, real64)/real(rate, real64)*1d9/count
    end function
end program
