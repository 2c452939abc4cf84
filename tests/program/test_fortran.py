"""The Fortran binding: events with values of every kind, reading, errors, threads."""
import os
import shutil

import support

PROGRAM = """
program client
    use netlogger
    use, intrinsic :: iso_fortran_env
    use, intrinsic :: iso_c_binding, only: c_int
    implicit none
    type(nl_log) :: log, off
    type(nl_reader) :: reader
    integer :: i, stat, found
    integer(int64) :: n
    real(real64) :: x
    logical :: has
    character(200) :: path, message, padded
    interface
        integer(c_int) function fork() bind(c)
            import :: c_int
        end function
        integer(c_int) function waitpid(pid, status, options) bind(c)
            import :: c_int
            integer(c_int), value :: pid, options
            integer(c_int) :: status
        end function
        subroutine leave(status) bind(c, name="_exit")
            import :: c_int
            integer(c_int), value :: status
        end subroutine
    end interface
    integer(c_int) :: child, ended
    call get_command_argument(1, path)
    padded = "padded"
    call log%open("fortran", trim(path), stat, message)
    if (stat /= 0 .or. .not. log%is_open()) error stop 2
    call log%write("Integers", "A", 1_int8, "B", -2_int16, "C", 3, "D", huge(1_int64))
    call log%write("Others  ", "R", 2.5, "X", 0.1d0, "T", .true., "F", .false., "P", padded, "E", "", "Q", 'a "b"'//new_line("a"), &
        "BLANKS", nl_exact("b  "), "Z", (1.0, 2.0))
    call log%write_level(NL_ERROR, "Bad")
    call spans()
    call log%set_level(NL_WARNING)
    call log%write("Filtered")
    call log%set_level(NL_DEBUG)
    !$omp parallel do
    do i = 0, 9999
        call log%write("Step", "I", i)
    end do
    !$omp end parallel do
    call log%flush()
    child = fork()
    if (child == 0) then
        call log%write("Child", "A", 1)
        call log%close(stat)
        call leave(int(stat, c_int))
    end if
    if (waitpid(child, ended, 0_c_int) /= child .or. ended /= 0) error stop 14
    call log%close(stat)
    if (stat /= 0 .or. log%is_open()) error stop 3
    call log%write("Never")
    call off%write("Nowhere", "A", 1)

    call log%open("fortran", "file:///nowhere/at/all?quiet=yes", stat, message)
    if (stat == 0 .or. index(message, "No such file") == 0) error stop 4
    call reader%open(path, "A ==", stat=stat, errmsg=message)
    if (stat == 0 .or. message == "") error stop 5
    if (reader%next()) error stop 6

    found = 0
    n = 0
    call reader%open(path, where="NL.EVNT == Step")
    do while (reader%next())
        call reader%get_number("I", n, has)
        if (.not. has .or. reader%prog() /= "fortran" .or. reader%time_ns() < 1000) error stop 7
        found = found + int(n)
    end do
    call reader%close()
    if (found /= 49995000) error stop 8
    call reader%open(path, where="NL.EVNT == Others")
    if (.not. reader%next()) error stop 9
    call reader%get_number("X", x, has)
    if (.not. has .or. abs(x - 0.1d0) > 0) error stop 10
    call reader%get_number("P", x, has)
    if (has .or. reader%get("NONE", has) /= "" .or. has) error stop 11
    if (len(reader%get("BLANKS")) /= 3) error stop 12
    if (reader%next()) error stop 13
    call reader%close()
    call reader%open("/nowhere") ! without stat: the end
contains
    subroutine spans()
        character(*), parameter :: REMOTE = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01"
        type(nl_span) :: outer, inner, never
        call outer%begin(log, "Outer", "A", 1, "B", "text  ")
        call log%write("Inside")
        inner%level = NL_ERROR
        call inner%begin(log, "Inner")
        inner%status = 3
        call inner%end("ROWS", 5_int64)
        call inner%end("ROWS", 6)
        call outer%end()
        call log%write("Outside")
        call nl_attach(REMOTE)
        if (nl_traceparent() /= REMOTE) error stop 20
        call outer%begin(log, "Remote")
        if (nl_traceparent() == REMOTE .or. index(nl_traceparent(), REMOTE(1:36)) /= 1) error stop 21
        call outer%end()
        call nl_attach(REMOTE(1:54)//"0")
        call outer%begin(log, "Unsampled")
        call log%write("InUnsampled")
        call outer%end()
        call nl_attach()
        if (nl_traceparent() /= REMOTE) error stop 22 ! the environment
        call nl_attach("")
        if (nl_traceparent() /= "") error stop 23
        call never%end()
        call never%begin(off, "Never")
        call never%end()
        if (nl_join_tracestate(["a=1 ", "a=2 ", "b=3 "]) /= "a=1,b=3") error stop 24
        if (nl_join_tracestate(["a=1 ", "B=2 "]) /= "") error stop 25
    end subroutine
end program
"""


class Fortran(support.Case):
    def test_fortran(self):
        folder = support.BUILD / "bindings" / "fortran"
        libraries = support.BUILD / "libnetlogger" / ".libs"
        if not (folder / "libnetlogger-fortran.a").exists() or shutil.which("gfortran") is None:
            self.skipTest("the Fortran binding is not built here")
        if not (libraries / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        source, program, log = self.scratch / "client.f90", self.scratch / "client", self.scratch / "a.log"
        source.write_text(PROGRAM)
        result = self.run_compiler("gfortran", "-Wall", "-Werror", "-fopenmp", f"-I{folder}", "-o", program, source,
                                  folder / "libnetlogger-fortran.a", f"-L{libraries}", "-lnetlogger", f"-Wl,-rpath,{libraries}")
        self.assertEqual(result.returncode, 0, result.stderr)
        remote = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01"
        result = self.run_program(program, log, env={**os.environ, "TRACEPARENT": remote})
        self.assertEqual((result.returncode, result.stderr.splitlines()[0]),
                         (1, "netlogger: /nowhere: No such file or directory"), result.stderr)
        lines = [line.split(" ", 2)[2] for line in log.read_text().splitlines() if "NL.EVNT=Step" not in line]
        start = "PROG=fortran LVL=Usage NL.EVNT="
        self.assertEqual(support.numbered_ids(lines), [
            start + "Integers A=1 B=-2 C=3 D=9223372036854775807",
            start + 'Others R=2.5 X=0.1 T=true F=false P=padded E="" Q="a \\"b\\"\\n" BLANKS="b  " Z="(unknown type)"',
            "PROG=fortran LVL=Error NL.EVNT=Bad",
            start + "Outer.start TRACE.ID=T1 SPAN.ID=S1 A=1 B=text",
            start + "Inside TRACE.ID=T1 SPAN.ID=S1",
            "PROG=fortran LVL=Error NL.EVNT=Inner.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2",
            "PROG=fortran LVL=Error NL.EVNT=Inner.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2 STATUS=3 ROWS=5",
            start + "Outer.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0",
            start + "Outside",
            start + "Remote.start PARENT.ID=S3 TRACE.ID=T2 SPAN.ID=S4",
            start + "Remote.end PARENT.ID=S3 TRACE.ID=T2 SPAN.ID=S4 STATUS=0",
            start + "InUnsampled",
            start + "Child A=1",
        ])


if __name__ == "__main__":
    support.main()
