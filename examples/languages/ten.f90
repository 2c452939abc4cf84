! The ten events of README.md in Fortran: gfortran -I.../netlogger/fortran ten.f90 -lnetlogger-fortran -lnetlogger
program ten
    use netlogger
    use, intrinsic :: iso_fortran_env
    use, intrinsic :: ieee_arithmetic
    implicit none
    type(nl_log) :: log
    character(1000) :: url
    real(real64) :: infinity
    integer(int64), parameter :: most = huge(1_int64)
    character, parameter :: lf = new_line("a"), tab = achar(9), cr = achar(13)

    call get_command_argument(1, url)
    infinity = ieee_value(infinity, ieee_positive_inf)
    call log%open("ten", url)
    call log%write("Ten.Integers", "ZERO", 0, "NEGATIVE", -49332, "LEAST", -most - 1, "MOST", most)
    call log%write("Ten.Reals", "TENTH", 0.1d0, "LARGE", -1.5d300, "NAN", ieee_value(infinity, ieee_quiet_nan), &
        "INFINITE", infinity, "NEGATIVE", -infinity)
    call log%write_level(NL_DEBUG, "Ten.Truth", "YES", .true., "NO", .false.)
    call log%write_level(NL_WARNING, "Ten.Quotes", "TEXT", 'say "hello", \ and ''goodbye'' A=1')
    call log%write_level(NL_ERROR, "Ten.Lines", "TEXT", "one"//lf//"two"//tab//"three"//cr//lf)
    call log%write_level(NL_IMPORTANT, "Ten.Utf8", "TEXT", "Grüße, 世界 🌍")
    call log%write_level(NL_SYSTEM, "Ten.Empty", "TEXT", "")
    call log%write("Ten.Huge", "TEXT", repeat("0123456789", 10000), "AFTER", 1)
    call log%write_level(NL_ALERT, "Ten.Nothing")
    call log%write("Ten.Many", "F01", 1, "F02", 2, "F03", 3, "F04", 4, "F05", 5, "F06", 6, "F07", 7, "F08", 8, "F09", 9, &
        "F10", 10, "F11", 11, "F12", 12, "F13", 13, "F14", 14, "F15", 15, "F16", 16)
    call log%close()
end program
