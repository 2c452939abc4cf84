package NetLogger;
use strict;
use warnings;
use NetLogger::Span ();
use XSLoader;

our $VERSION = '1.0.0';
XSLoader::load('NetLogger', $VERSION);

use Carp ();
use Time::Local ();

# The levels of NetLogger 4.
our ($FATAL, $ERROR, $WARN, $INFO, $DEBUG) = qw(Emergency Error Warning Usage Debug);

sub new {
    goto &NetLogger::open if @_ > 1;
    return bless {}, $_[0];
}

# NetLogger->open($prog, $url); or, as in NetLogger 4, $object->open($url).
sub open {
    my ($self, $url) = @_;
    goto &_open if !ref $self;
    $url = $ENV{NL_DEST} if !defined $url;
    $url = defined $url ? $url : '-';
    $url = "file:$url" if $url !~ m{^(?:-$|file:|\w[\w+-]*://|unix:|memory:)};
    $url .= '?format=bp&append=yes' if $url =~ /^file:/ && $url !~ /\?/;
    (my $prog = $0) =~ s{.*/}{};
    return undef if !eval { $self->_open_in($prog, $url); 1 };
    $self->NetLogger::set_level($self->{'NetLogger.level'} || $INFO);
    return 1;
}

# Writes the fields of a hash, as in NetLogger 4. Its field ts is the time.
sub _write_hash {
    my ($self, $level, $event, $hash) = @_;
    my $time_ns = 0;
    if (defined $hash->{ts} && $hash->{ts} =~ /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?Z?$/) {
        $time_ns = Time::Local::timegm($6, $5, $4, $3, $2 - 1, $1) * 1_000_000_000 + int(1e9 * ($7 || 0) + 0.5);
    } elsif (defined $hash->{ts}) {
        $time_ns = int($hash->{ts} * 1e9);
    }
    return $self->_write_at($level, $event, $time_ns, map { ($_, $hash->{$_}) } grep { $_ ne 'ts' } sort keys %$hash);
}

sub info  { my ($self, $event, $hash) = @_; return $self->NetLogger::usage($event, $hash || {}) }
sub warn  { my ($self, $event, $hash) = @_; return $self->NetLogger::warning($event, $hash || {}) }
sub fatal { my ($self, $event, $hash) = @_; return $self->NetLogger::emergency($event, $hash || {}) }

# Returns, for each field of a format, its name, the format of its value, and the number of arguments for this format.
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
    Carp::croak("a pattern must not be empty or contain spaces") if $pattern !~ /\A\S+\z/;
    $self->control("event $pattern " . ($on ? 'on' : 'off'));
}

sub send_to {
    my ($self, $url) = @_;
    Carp::croak("a URL must not be empty or contain spaces") if $url !~ /\A\S+\z/;
    $self->control("destination $url");
}

sub span {
    my ($self, $name, @fields) = @_;
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
    Carp::croak("unknown option: " . join ', ', sort keys %options) if %options;
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

NetLogger - timestamped events from all parts of a distributed program

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

A call copies the event to memory; a thread of the library sends the event. A call waits only if this memory is full because the
destination is slow. It is not an error if the collector is not running: the library keeps the events, prints one line on standard
error (unless C<NETLOGGER_QUIET> is 1), and tries again. Logging and closing never die because of the destination. Other
methods die with the library's message if they fail. The log reports lost events.

=head2 Values

=over

=item *

Numbers are integers, unsigned integers or doubles. A string that looks like a number is a string.

=item *

Strings of characters (with perl's utf8 flag) are logged in UTF-8, other strings as bytes.

=item *

Since perl 5.36, true and false are booleans. The values true and false of JSON::PP are booleans in any version of perl.

=item *

C<undef> is empty text. Objects are converted to strings.

=back

Names of fields consist of letters, digits, C<.>, C<_> and C<->, and begin with a letter or C<_>; other bytes become C<_>.

=head2 A log

=over

=item NetLogger->open($prog, $url)

Opens a log of the program C<$prog>. C<$url> is a path or a URL of netlogger(7), such as C<file:///tmp/a.log> or
C<x-netlog://HOST:PORT>, with options (C<?policy=newest>); default: C<$NETLOGGER_DEST>. If this variable is unset, or
C<$NETLOGGER_ON> is 0, logging is off.

=item $log->event($name, FIELD => $value, ...)

Logs an event of level Usage. Returns true if it was logged, false if it is off or lost.

=item $log->emergency, alert, error, warning, auth, security, usage, system, important, debug

Logs an event with the level that the method's name states.

=item $log->log($level, $name, FIELD => $value, ...)

Logs an event. C<$level> is a name, or a number from 1 (Emergency) to 10 (Debug).

=item $log->write($name, $format, @values)

Logs an event with fields from a format of sprintf: C<"SEND.SZ=%d FILE=%s">. The format determines the fields. Without
values, C<$format> is read like a line of a log: C<"SEND.SZ=$size">. A text without fields, or a format that does not match
its values, becomes the field C<MSG>.

=item $log->span($name, FIELD => $value, ...)

Logs C<$name.start> now, and C<$name.end> with STATUS when the result goes out of scope. Until then, events of the thread
carry the ID of the span. See L<NetLogger::Span>, also for contexts.

=item $log->is_on($level), $log->set_level($level)

C<is_on> returns whether events of a level are written. C<set_level> sets the threshold.

=item $log->control($commands), $log->switch($pattern, $on), $log->send_to($url)

C<control> executes commands (C<level LEVEL>, C<event PATTERN off|on>, C<destination URL>), one per line. C<switch> switches
events whose name matches a pattern on or off. C<send_to> changes the destination.

=item $log->flush, $log->close, $log->is_open

C<flush> sends all events and waits; it dies if some cannot be sent. C<close> also closes the log, and returns false if
some were not delivered. A log is closed when its last reference disappears.

=back

=head2 The interface of NetLogger 4

    my $log = NetLogger->new();
    $log->set_level($NetLogger::INFO);
    $log->open('x-netlog://localhost') or die;
    $log->info('inca.usage', { ts => '2010-10-13T01:00:00Z', numConns => 507 });

C<new> without arguments returns an object without a log. Other classes may inherit C<new>. C<open> appends to a file in the
format BP, and returns C<undef> if it fails. C<fatal>, C<error>, C<warn>, C<warning>, C<info> and C<debug> take a hash of
fields. The levels are C<$FATAL>, C<$ERROR>, C<$WARN>, C<$INFO> and C<$DEBUG>.

=head2 A reader

=over

=item NetLogger->read($url, where => $expression, follow => 1)

Opens a source: a path, C<->, C<memory:NAME>, or a collector. C<where> selects records. With C<follow>, the reader waits at
the end of a file for more records.

=item $reader->next, $reader->next($seconds)

Returns the next record. The result is C<undef> at the end of the source, or if no record arrives within C<$seconds>.

=item $reader->stats, $reader->close

C<stats> returns a list of names and counts: records, malformed, unterminated, lost, repeated. C<close> closes the reader.

=item $record->time_ns, time, level, host, prog, event

Return the standard fields. C<time_ns> is in nanoseconds and C<time> in seconds since 1970 UTC; C<level> is the name of the level.
The result is C<undef> if the record does not have the field.

=item $record->get($name), $record->fields, $record->pairs

C<get> returns the value of a field. C<fields> returns a reference to the hash of all fields. C<pairs> returns the list of all
names and values, including repeated names. UTF-8 text is a string of characters; other text is a string of bytes.

=back

=head1 THREADS AND PROCESSES

Threads may share a log. Each thread has its own copy of the object. Closing a copy flushes the log, and closing the last
copy closes the log. Only one thread may use a reader. After C<fork>, a child may continue to use its
parent's logs; its events are a separate stream. A child that calls C<POSIX::_exit> should flush these logs first.

=head1 SEE ALSO

L<NetLogger::Span>, L<Log::Any::Adapter::NetLogger>

=cut
