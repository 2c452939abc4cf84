package NetLogger;
use strict;
use warnings;
use XSLoader;

our $VERSION = '1.0.0';
XSLoader::load('NetLogger', $VERSION);

use Carp ();

sub new { goto &NetLogger::open }

# The fields of a format: name, format of the value, how many arguments that takes. Formats are few.
my (%formats, $pair, $conversion);
$pair       = qr/(?:^|(?<=\s))([A-Za-z_][A-Za-z0-9._-]*)=/;
$conversion = qr/%(?:%|[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlqLV]*[csduoxXeEfgGbBi])/;

sub _fields_of {
    my ($format) = @_;
    return $formats{$format} if $formats{$format};
    my ($before, @parts) = split $pair, $format;
    my @fields;
    @parts = () if @parts && $before =~ /\S/; # no fields: values do not match
    while (my ($name, $value) = splice @parts, 0, 2) {
        $value = '' if !defined $value;
        $value =~ s/\s+\z//;
        (my $rest = $value) =~ s/$conversion//g;
        return [] if $rest =~ /%/;
        my $count = 0;
        for my $taken (grep { $_ ne '%%' } $value =~ /$conversion/g) {
            $count += 1 + ($taken =~ tr/*//);
        }
        push @fields, [$name, $value, $count];
    }
    %formats = () if keys %formats > 1000;
    return $formats{$format} = \@fields;
}

sub write {
    my ($self, $event, $format, @values) = @_;
    return $self->event($event) if !defined $format || $format !~ /\S/;
    return $self->_write_text('Usage', $event, $format) if !@values;
    my (@pairs, @rest);
    @rest = @values;
    for my $field (@{ _fields_of($format) }) {
        my ($name, $value_format, $count) = @$field;
        return $self->event($event, MSG => $format, VALUES => "@values") if $count > @rest;
        push @pairs, $name, sprintf $value_format, splice @rest, 0, $count;
    }
    return $self->event($event, MSG => $format, VALUES => "@values") if @rest;
    return $self->event($event, @pairs);
}

sub switch {
    my ($self, $pattern, $on) = @_;
    Carp::croak("a pattern is not empty and has no blanks") if $pattern !~ /\A\S+\z/;
    $self->control("event $pattern " . ($on ? 'on' : 'off'));
}

sub send_to {
    my ($self, $url) = @_;
    Carp::croak("a URL is not empty and has no blanks") if $url !~ /\A\S+\z/;
    $self->control("destination $url");
}

sub span {
    my ($self, $name, @fields) = @_;
    require NetLogger::Span;
    return NetLogger::Span->begin($self, $name, @fields);
}

sub read {
    my ($class, @arguments) = @_;
    return NetLogger::Reader->open(@arguments);
}

package NetLogger::Reader;

sub open {
    my ($class, $url, %options) = @_;
    my ($where, $follow) = (delete $options{where}, delete $options{follow});
    Carp::croak("no such option: " . join ', ', sort keys %options) if %options;
    return $class->_open($url, $where, $follow ? 1 : 0);
}

package NetLogger::Record;

sub time_ns { $_[0]{time_ns} }
sub time    { $_[0]{time_ns} / 1e9 }
sub level   { $_[0]{level} }
sub host    { $_[0]{host} }
sub prog    { $_[0]{prog} }
sub event   { $_[0]{event} }
sub fields  { $_[0]{fields} }
sub pairs   { @{ $_[0]{pairs} } }
sub get     { $_[0]{fields}{ $_[1] } }

1;

__END__

=encoding utf8

=head1 NAME

NetLogger - timestamped events from every part of a distributed program

=head1 SYNOPSIS

    use NetLogger;

    my $log = NetLogger->open('testprog', 'x-netlog://dolly.lbl.gov:14830');
    $log->event('WriteData', 'SEND.SZ' => $size, FILE => $name);
    $log->write('WriteData', 'SEND.SZ=%d', $size);
    $log->error('DiskFull', FILE => $name);
    $log->close;

    my $reader = NetLogger->read('/tmp/a.log', where => 'NL.EVNT == "WriteData"');
    while (my $record = $reader->next) {
        print $record->time, ' ', $record->get('SEND.SZ'), "\n";
    }

=head1 DESCRIPTION

An event is put into memory, typed, and a thread of the library writes and sends it; a call waits for nothing unless the
destination is so slow that this memory is full. What cannot be done dies in the library's words; an event that is lost,
because the log's policy is to lose it, does not: the log itself says how many are missing.

=head2 Values

=over

=item *

A number is a number: integer, unsigned, or double (nan and inf too). A string that looks like one is a string.

=item *

A string of characters (with perl's utf8 flag) is logged in UTF-8, any other string as the bytes that it is.

=item *

True and false are booleans, from perl 5.36 on wherever they come from; so are those of JSON::PP.

=item *

C<undef> is an empty text. An object is what it says when it is a string, which numbers of Math::BigInt are too.

=back

Names of fields are letters, digits, C<.>, C<_> and C<->, the first a letter or C<_>; any other byte becomes C<_>.

=head2 A log

=over

=item NetLogger->open($prog, $url)

Opens a log of the program C<$prog>. C<$url> is C<file:///tmp/a.log>, C<x-netlog://HOST:PORT>, C<-> and more, with
options (C<?policy=newest>), or a path; without one it is C<$NETLOGGER_DEST>. When that is unset, or C<$NETLOGGER_ON> is
0, logging is off, and nothing is written.

=item $log->event($name, FIELD => $value, ...)

Logs an event of level Usage. True when it was logged, false when it is switched off or lost.

=item $log->emergency, alert, error, warning, auth, security, usage, system, important, debug

The same, of that level.

=item $log->log($level, $name, FIELD => $value, ...)

The same; C<$level> is a name or a number from 1, Emergency, to 10, Debug.

=item $log->write($name, $format, @values)

Logs an event whose fields are a format, as of sprintf: C<"SEND.SZ=%d FILE=%s">. Fields are told apart by the format,
never by what is put in. Without values C<$format> is read as a line of a log is: C<"SEND.SZ=$size">.

=item $log->span($name, FIELD => $value, ...)

Logs C<$name.start> now, and C<$name.end> when what it returns goes out of scope, with the same fields, STATUS and DUR,
the seconds in between. See L<NetLogger::Span>.

=item $log->is_on($level), $log->set_level($level)

Whether events of a level are written; sets the threshold.

=item $log->control($commands), $log->switch($pattern, $on), $log->send_to($url)

Does what lines of commands say (C<level LEVEL>, C<event PATTERN off|on>, C<destination URL>); switches the events on or
off whose name matches a pattern; sends on to another destination.

=item $log->flush, $log->close, $log->is_open

Sends what was logged and waits for that; the same, and closes. A log is closed when nothing refers to it any more; then
nobody hears of failures.

=back

=head2 A reader

=over

=item NetLogger->read($url, where => $expression, follow => 1)

Opens a source: a path, C<->, C<memory:NAME>, or a collector. C<where> chooses records; with C<follow> it waits for more
at the end of a file.

=item $reader->next, $reader->next($seconds)

The next record; C<undef> at the end, or when none has come within that time.

=item $reader->stats, $reader->close

A list of counts, as for a hash: records, malformed, unterminated, lost, repeated.

=item $record->time_ns, time, level, host, prog, event

What every record has: nanoseconds or seconds since 1970, UTC; the level's name; undef where it has none.

=item $record->get($name), $record->fields, $record->pairs

A field's value; a reference to the hash of all; the list of names and values in order, which alone has names that
repeat. Text that is UTF-8 is a string of characters, any other one of bytes.

=back

=head1 THREADS AND PROCESSES

A log may be used by several threads; each has its own copy of the object, which it closes for itself: what was logged is
sent then, and the last that is closed, or goes, closes the log. A reader is for one thread. After
C<fork> a child goes on with the logs of its parent, as a stream of its own. A child that ends by C<POSIX::_exit> should
flush them before.

=head1 SEE ALSO

L<NetLogger::Span>, L<Log::Any::Adapter::NetLogger>

=cut
