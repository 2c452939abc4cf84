"""The Perl binding: every type, errors, spans, Log::Any, threads, forks, readers; and its own tests and pages."""
import os
import shutil
import subprocess

import support

WORK = support.BUILD / "bindings" / "perl" / "work"
LIB = os.pathsep.join(str(WORK / "blib" / part) for part in ("lib", "arch"))


class Perl(support.Case):
    def setUp(self):
        if not (support.BUILD / "bindings" / "perl" / "built").exists():
            self.skipTest("the library in Perl is not built here: configure says why")
        super().setUp()
        self.path = self.scratch / "a.log"

    def perl(self, text, *arguments, code=0, **options):
        """Runs a program with the log's path in $path. Returns its output."""
        options.setdefault("env", dict(os.environ, PERL5LIB=LIB))
        program = "use strict; use warnings; use NetLogger; my $path = shift;\n" + text
        result = self.run_program("perl", "-e", program, self.path, *arguments, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def lines(self):
        """Returns the log's lines from NL.EVNT on."""
        return [line.split(" NL.EVNT=", 1)[1] for line in self.path.read_text(errors="surrogateescape").splitlines()]

    def has(self, module):
        return subprocess.run(["perl", f"-M{module}", "-e", "1"], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def test_every_type(self):
        version = float(self.perl("print $]"))
        cases = [
            ("0", "0"), ("-1", "-1"), ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775807 - 1", "-9223372036854775808"), ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "18446744073709552000"), ("0.1", "0.1"), ("9**9**9", "inf"), ("-9**9**9", "-inf"),
            ("-sin(9**9**9)", "nan"), ("1e300", "1e+300"), ("'5'", "5"), ("'05'", "05"), ("''", '""'), ("undef", '""'),
            ("'a b'", '"a b"'), (r"'\"'", r'"\\\""'), (r'"a\nb\tc\r"', r'"a\nb\tc\r"'), (r'"=\\"', r'"=\\"'),
            (r'"\0"', r'"\x00"'), (r'"\x{4e16}\x{fc}"', "世ü"), (r'"\xc3\xbc"', "ü"), (r'"\xff"', "\udcff"),
            ("Told->new", '"told so"'), ("'x' x 131072", "x" * 131072), ("'x' x 200000", "x" * 131072),
        ]
        if version >= 5.036:
            cases += [("1 == 1", "true"), ("1 == 2", "false"), ("!!1", "true")]
        if self.has("JSON::PP"):
            cases += [("do { require JSON::PP; JSON::PP::true() }", "true"), ("JSON::PP::false()", "false")]
        if self.has("Math::BigInt"):
            cases += [("do { require Math::BigInt; Math::BigInt->new(2)**100 }", str(2**100))]
        calls = "".join(f"$log->event('E', V => {value}) or die '{i}';\n" for i, (value, _) in enumerate(cases))
        self.perl("package Told { use overload '\"\"' => sub { 'told so' }; sub new { bless {} } }\n"
                  "my $log = NetLogger->open('p', $path);\n" + calls)
        for (value, expected), line in zip(cases, self.lines(), strict=True):
            with self.subTest(value=value):
                shown = line.split("V=", 1)[1]
                if value == "18446744073709551616":
                    self.assertEqual(float(shown), 2.0**64)
                else:
                    self.assertEqual(shown, expected)

    def test_a_number_that_was_printed_is_a_number(self):
        self.perl("my $log = NetLogger->open('p', $path); my $n = 5; my $s = \"$n\"; my $t = '7'; my $u = $t + 1;\n"
                  "$log->event('E', N => $n, T => $t);")
        self.assertEqual(self.lines(), ["E N=5 T=7"])

    def test_names(self):
        self.perl("my $log = NetLogger->open('p', $path);\n"
                  "$log->event('None'); $log->event(\"na\\x{ef}ve \\\"event\\\"\", 'A B=' => 1, '' => 2, 5 => 3);\n"
                  "$log->event('Many', map { (\"F$_\" => $_) } 1 .. 100);\n"
                  "$log->event('Long' . 'x' x 1000, 'N' x 1000 => 1);\n"
                  "for my $i (0 .. 19999) { my $n = $i % 7000; $log->event(\"E$n\", \"F$n\" => $i) or die }\n")
        lines = self.lines()
        self.assertEqual(lines[0], "None")
        self.assertTrue(lines[1].endswith(" A_B_=1 _=2 _=3"), lines[1])
        self.assertEqual(lines[2], "Many " + " ".join(f"F{i}={i}" for i in range(1, 101)))
        self.assertEqual(lines[3], "Long" + "x" * 1000 + " " + "N" * 1000 + "=1")
        self.assertEqual(lines[4:], [f"E{i % 7000} F{i % 7000}={i}" for i in range(20000)])

    def test_levels_and_switching(self):
        said = self.perl("""
            my $log = NetLogger->open('p', $path);
            for my $level (qw(emergency alert error warning auth security usage system important debug)) {
                $log->$level('Method');
                $log->log($level, 'Log');
            }
            $log->log(3, 'Number');
            $log->set_level('Error');
            print $log->event('Off') ? 1 : 0, $log->error('On') ? 1 : 0, $log->is_on('alert') ? 1 : 0,
                $log->is_on('Usage') ? 1 : 0;
            $log->set_level(10);
            $log->switch('Wri*', 0);
            print $log->event('Write') ? 1 : 0;
            $log->switch('Wri*', 1);
            print $log->event('Write') ? 1 : 0;
            $log->flush;
            $log->send_to("file://$path.2");
            $log->event('There');
            $log->close; $log->close; print $log->is_open ? 1 : 0;
            """)
        self.assertEqual(said, "0110" "01" "0")
        levels = [line.split(" LVL=")[1].split()[0] for line in self.path.read_text().splitlines()]
        names = ["Emergency", "Alert", "Error", "Warning", "Auth", "Security", "Usage", "System", "Important", "Debug"]
        self.assertEqual(levels, [name for name in names for _ in "12"] + ["Error", "Error", "Usage"])
        self.assertIn("NL.EVNT=There\n", (self.scratch / "a.log.2").read_text())

    def test_fields_as_text(self):
        self.perl(r"""
            my $log = NetLogger->open('p', $path); my $size = 49332;
            $log->write('WriteData', "SEND.SZ=$size");
            $log->write('Quoted', 'A="x \" y" B=two words C=');
            $log->write('Format', 'A=%d B=%s C=%5.2f%% D=%*d E=x', 7, "a b=c\n", 2.5, 4, 1);
            $log->write('Nothing');
            for my $wrong (['just words'], ['words %s', 1], ['A=%d B=%d', 1], ['A=%d', 1, 2], ['A=%y', 1]) {
                $log->write('Wrong', @$wrong) or die;
            }
            """)
        self.assertEqual(self.lines(), ["WriteData SEND.SZ=49332", 'Quoted A="x \\" y" B="two words" C=""',
                                        'Format A=7 B="a b=c\\n" C=" 2.50%" D="   1" E=x', "Nothing", 'Wrong MSG="just words"',
                                        'Wrong MSG="words %s" VALUES=1', 'Wrong MSG="A=%d B=%d" VALUES=1',
                                        'Wrong MSG="A=%d" VALUES="1 2"', 'Wrong MSG="A=%y" VALUES=1'])

    def test_errors(self):
        said = self.perl(r"""
            sub said { my ($code) = @_; eval { $code->(); 1 } ? "nothing\n" : $@ }
            print said(sub { NetLogger->open('p', 'file:///no/such/a.log?quiet=yes') });
            my $away = NetLogger->open('p', 'x-netlog://127.0.0.1:1?quiet=yes');
            print $away->event('E') ? '' : "not kept\n", said(sub { $away->flush }), $away->close ? "closed\n" : '';
            my $log = NetLogger->open('p', $path);
            print $log->event('E', 'A') ? '' : "no value\n";
            print said(sub { $log->log('Loud', 'E') });
            print said(sub { $log->control('nonsense') });
            print said(sub { $log->switch('a b', 1) });
            print said(sub { $log->event('E', A => Dies->new) });
            print said(sub { NetLogger::event({}, 'E') }), said(sub { NetLogger::event(undef, 'E') });
            $log->close;
            print $log->event('E') ? "is closed\n" : '';
            my $full = NetLogger->open('p', 'file:///dev/full?quiet=yes');
            $full->event('E');
            print said(sub { $full->flush }), $full->close ? "closed\n" : '';
            print said(sub { NetLogger->read('/no/such') });
            print said(sub { NetLogger->read($path, where => '&&') });
            print said(sub { NetLogger->read($path, colour => 1) });
            my $reader = NetLogger->read($path); $reader->close;
            print said(sub { $reader->next });
            package Dies; use overload '""' => sub { die "no words\n" }; sub new { bless {} }
            """)
        for line, words in zip(said.splitlines(), (
                "No such file or directory; create the directory /no/such at -e line", "127.0.0.1:1: Connection refused",
                "invalid level; use one of Emergency", "nonsense", "contain spaces", "no words", "not a log", "not a log",
                "No space left", "No such file", "column", "unknown option: colour", "reader is closed"),
                strict=True):
            self.assertIn(words, line)
        self.assertEqual(self.lines(), ['E A=""'])

    def test_switched_off(self):
        self.assertEqual(self.perl("my $log = NetLogger->open('p'); print $log->event('E', A => 1) ? 1 : 0; $log->close;",
                                   env=dict(os.environ, PERL5LIB=LIB, NETLOGGER_ON="0", NETLOGGER_DEST="/nowhere/x")), "0")

    def test_spans(self):
        remote = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01"
        said = self.perl("""
            my $remote = shift;
            my $log = NetLogger->open('p', $path);
            { my $span = $log->span('Read', 'BLOCK.ID' => 7); $span->add(BYTES => 10); $log->event('Inside'); }
            $log->event('Outside');
            my $span = $log->span('Fails'); $span->fail; $span->end(MORE => 1); $span->end; undef $span;
            {
                my $attached = NetLogger::Context->new($remote)->attach;
                my $outer = $log->span('Outer');
                my $apart = NetLogger::Span->begin_detached($log, $outer->context, 'Apart', 'A B' => undef);
                my $inner = $log->span('Inner'); $inner->set_status(3); undef $inner;
                $outer->end;
                $apart->end;
                print NetLogger::Context->current->traceparent, "\n";
            }
            my $attached = NetLogger::Context->new(substr($remote, 0, 54) . '0')->attach;
            $span = $log->span('Unsampled'); $log->event('InUnsampled');
            print substr($span->context->traceparent, 0, 36), "\n";
            undef $span;
            undef $attached;
            $span = $log->span('Late'); $log->close; undef $span;
            print NetLogger::Context->from_environment->traceparent, "\n";
            print NetLogger::join_tracestate('a=1 , b=2', 'a=3'), NetLogger::join_tracestate('a=1', 'B=2'), "\n";
            print NetLogger::Context->new('00-') ? 'true' : 'false', "\n";
            """, remote, env=dict(os.environ, PERL5LIB=LIB, TRACEPARENT=remote))
        self.assertEqual(said, f"{remote}\n{remote[:36]}\n{remote}\na=1,b=2\nfalse\n")
        self.assertEqual(support.numbered_ids(self.lines()), [
            "Read.start TRACE.ID=T1 SPAN.ID=S1 BLOCK.ID=7",
            "Inside TRACE.ID=T1 SPAN.ID=S1",
            "Read.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0 BYTES=10",
            "Outside",
            "Fails.start TRACE.ID=T2 SPAN.ID=S2",
            "Fails.end TRACE.ID=T2 SPAN.ID=S2 STATUS=-1 MORE=1",
            "Outer.start PARENT.ID=S3 TRACE.ID=T3 SPAN.ID=S4",
            'Apart.start PARENT.ID=S4 TRACE.ID=T3 SPAN.ID=S5 A_B=""',
            "Inner.start PARENT.ID=S4 TRACE.ID=T3 SPAN.ID=S6",
            "Inner.end PARENT.ID=S4 TRACE.ID=T3 SPAN.ID=S6 STATUS=3",
            "Outer.end PARENT.ID=S3 TRACE.ID=T3 SPAN.ID=S4 STATUS=0",
            "Apart.end PARENT.ID=S4 TRACE.ID=T3 SPAN.ID=S5 STATUS=0",
            "InUnsampled",
            "Late.start TRACE.ID=T4 SPAN.ID=S7",
        ])

    def test_log_any(self):
        if not self.has("Log::Any"):
            self.skipTest("Log::Any is not installed")
        said = self.perl("""
            use Log::Any::Adapter; use Log::Any ();
            my $log = NetLogger->open('p', $path);
            Log::Any::Adapter->set('NetLogger', log => $log);
            my $logger = Log::Any->get_logger(category => 'Disk::Reader');
            $logger->info('read', 'blocks', { BLOCKS => 7, LIST => [1] });
            $logger->context->{REQ} = 5;
            $logger->warningf('%d of %s', 3, 'them');
            $logger->$_('m') for qw(trace debug notice error critical alert emergency);
            $log->set_level('Warning');
            print $logger->is_info ? 1 : 0, $logger->is_error ? 1 : 0;
            Log::Any::Adapter->set('NetLogger', url => "$path.2", prog => 'own');
            Log::Any->get_logger(category => 'Other')->error('words');
            """)
        self.assertEqual(said, "01")
        lines = self.lines()
        self.assertRegex(lines[0], r'^Disk::Reader MSG="read blocks" BLOCKS=7 LIST=\S+')
        self.assertEqual(lines[1], 'Disk::Reader MSG="3 of them" REQ=5')
        levels = [line.split(" LVL=")[1].split()[0] for line in self.path.read_text().splitlines()]
        self.assertEqual(levels, ["Usage", "Warning", "Debug", "Debug", "Important", "Error", "Error", "Alert", "Emergency"])
        self.assertIn(" PROG=own LVL=Error NL.EVNT=Other MSG=words", (self.scratch / "a.log.2").read_text())

    def test_fork(self):
        self.perl("""
            use POSIX ();
            my $log = NetLogger->open('p', $path);
            $log->event('Before', N => 0);
            for my $i (0 .. 4) {
                next if fork;
                $log->event('Child', N => $i);
                if ($i % 2) { exit 0 } else { $log->flush; POSIX::_exit(0) }
            }
            for (0 .. 4) { wait; die $? if $? }
            $log->event('After', N => 0);
            """)
        self.assertEqual(sorted(self.lines()), ["After N=0", "Before N=0"] + [f"Child N={i}" for i in range(5)])

    def test_threads(self):
        if subprocess.run(["perl", "-Mthreads", "-e", "1"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("this perl has no threads")
        self.perl("""
            use threads;
            my $log = NetLogger->open('p', "file://$path?policy=block&block=60");
            my @threads = map { my $t = $_; threads->create(sub { $log->event('E', T => $t, N => $_) for 1 .. 2000 }) } 1 .. 4;
            undef $log;  # the other threads continue
            $_->join for @threads;
            """)
        self.assertEqual(sorted(self.lines()), sorted(f"E T={t} N={n}" for t in range(1, 5) for n in range(1, 2001)))

    def test_closing_in_threads(self):
        """If one thread closes its log, the other threads can still log."""
        if not self.has("threads"):
            self.skipTest("this perl has no threads")
        self.perl("""
            use threads;
            my $log = NetLogger->open('p', "file://$path?policy=block&block=60");
            my @threads = map { my $t = $_; threads->create(sub {
                for my $n (1 .. 2000) { $log->event('E', T => $t, N => $n) or die }
                $log->close; $log->close; die if $log->is_open or $log->event('Late');
            }) } 1 .. 4;
            $log->event('Main'); $log->close; die if $log->is_open;
            $_->join for @threads;
            """)
        self.assertEqual(sorted(self.lines()),
                         sorted(["Main", *(f"E T={t} N={n}" for t in range(1, 5) for n in range(1, 2001))]))

    def test_round_trip(self):
        for suffix in ("log", "nlb"):
            said = self.perl(r"""
                binmode STDOUT, ':utf8'; my $file = "$path." . shift;
                my $log = NetLogger->open('prog', $file);
                $log->warning('Types', I => -5, U => 18446744073709551615, F => 0.5, S => "a \"b\"\n", E => '', A => 1,
                    W => "\x{4e16}", B => "\xff\0", T => 1 == 1, A => 2);
                $log->event('Count', N => $_) for 1 .. 10;
                $log->close;
                my $reader = NetLogger->read($file, where => 'NL.EVNT == "Types" || N > 8');
                my $record = $reader->next;
                print join('|', $record->event, $record->level, $record->prog, abs(time - $record->time) < 60,
                    $record->pairs), "\n", join('|', map { $_ => $record->get($_) } sort keys %{ $record->fields }), "\n";
                my @n; while (my $r = $reader->next) { push @n, $r->get('N') }
                my %stats = $reader->stats; print "@n $stats{records} $stats{malformed}\n";
                """, suffix).split("\n")
            values = 'I|-5|U|18446744073709551615|F|0.5|S|a "b"'
            true = "true" if suffix == "log" else "1"
            self.assertEqual(said[0], "Types|Warning|prog|1|" + values)
            self.assertEqual(said[1], f"|E||A|1|W|世|B|ÿ\0|T|{true}|A|2")
            self.assertEqual(said[2], f"A|1|B|ÿ\0|E||F|0.5|I|-5|S|a \"b\"")
            self.assertEqual(said[3], f"|T|{true}|U|18446744073709551615|W|世")
            self.assertEqual(said[4], "9 10 11 0")

    def test_following(self):
        said = self.perl("""
            open my $out, '>>', $path or die; $out->autoflush(1);
            my $reader = NetLogger->read($path, follow => 1);
            print defined $reader->next(0.05) ? 1 : 0;
            print $out "DATE=20260101000000 NL.EVNT=E N=1\\n";
            print $reader->next->get('N');
            $SIG{ALRM} = sub { die "woken\\n" }; alarm 1;
            print eval { $reader->next; 1 } ? 'no' : $@;
            """)
        self.assertEqual(said, "01woken\n")

    def test_as_a_user_installs_it(self):
        """perl Makefile.PL && make && make test && make install, in a copy of the source."""
        source = self.scratch / "source"
        shutil.copytree(support.SOURCE / "bindings" / "perl", source)
        self.run_program("chmod", "-R", "u+w", source)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
        environment["PKG_CONFIG_PATH"] = support.pkg_config_folder(self.scratch)
        for command in (["perl", "Makefile.PL"], ["make"], ["make", "test"], ["make", "install", f"DESTDIR={self.scratch}/root"]):
            result = self.run_compiler(*command, cwd=source, env=environment)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            if "test" in command:
                self.assertIn("Result: PASS", result.stdout)
        self.assertTrue(list((self.scratch / "root").rglob("NetLogger.so")))
        self.assertTrue(list((self.scratch / "root").rglob("NetLogger.3pm")))
        result = self.run_program("perl", "Makefile.PL", cwd=source,
                                  env={**environment, "PKG_CONFIG_PATH": "/none", "PKG_CONFIG_LIBDIR": "/none"})
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("PKG_CONFIG_PATH=", result.stderr)

    def test_the_interface_of_netlogger_4(self):
        """A class that inherits from NetLogger has its own new, as in a network reservation system of 2006."""
        self.perl(r"""
package Logger;
our @ISA = qw(NetLogger);
sub new { my ($class, %args) = @_; my $self = {%args, method => 'test'}; return bless $self, $class }
sub info { my ($self, $name, $hash) = @_; $self->SUPER::info("$self->{method}.$name", {%$hash, login => 'me'}) }
sub debug { my ($self, $name, $hash) = @_; $self->SUPER::debug("$self->{method}.$name", $hash) }
sub warning { my ($self, $name, $hash) = @_; $self->SUPER::warning("$self->{method}.$name", $hash) }
package main;
my $log = Logger->new();
die if $log->info('lost', {});
$log->set_level($NetLogger::INFO);
$log->open($path) or die;
$log->info('request', {fields => "a 'b'\n"}) or die;
die if $log->debug('off', {a => 1});
$log->set_level($NetLogger::DEBUG);
$log->debug('on', {a => 1}) or die;
$log->warning('Error', {fault => 'x=y'}) or die;
$log->fatal('end') or die;
$log->close or die;
my $plain = NetLogger->new();
die if defined $plain->open('file:///no/such/folder/a.log?quiet=yes');
$plain->open("file://$path") or die;
$plain->info('inca.usage', {ts => '2010-10-13T01:00:00.25Z', numConns => 507}) or die;
$plain->warn('w', {ts => 1}) or die;
$plain->error('e', {}) or die;
$plain->close;
""")
        lines = self.path.read_text().splitlines()
        self.assertEqual([line.partition(" event=")[2].split(" host=")[0] for line in lines[:4]],
                         ["test.request level=Info", "test.on level=Debug", "test.Error level=Warn", "end level=Fatal"])
        self.assertTrue(lines[0].endswith(""" fields="a 'b'\\n" login=me"""), lines[0])
        self.assertTrue(lines[2].endswith(' fault="x=y"'), lines[2])
        self.assertRegex(lines[4], r"^ts=2010-10-13T01:00:00\.250000Z event=inca\.usage level=Info host=\S+ prog=\S+ numConns=507$")
        self.assertRegex(lines[5], r"^ts=1970-01-01T00:00:01\.000000Z event=w level=Warn ")
        self.assertEqual(len(lines), 7)


if __name__ == "__main__":
    support.main()
