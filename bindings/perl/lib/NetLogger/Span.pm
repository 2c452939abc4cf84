package NetLogger::Span;
use strict;
use warnings;
use Time::HiRes ();

sub begin {
    my ($class, $log, $name, @fields) = @_;
    $log->event("$name.start", @fields);
    my $self = bless { log => $log, name => $name, fields => \@fields, more => [], status => 0 }, $class;
    $self->{began} = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
    return $self;
}

sub add {
    my ($self, @more) = @_;
    push @{ $self->{more} }, @more;
}

sub fail { $_[0]{status} = -1 }

sub end {
    my ($self, @more) = @_;
    my $log = delete $self->{log} or return;
    my $seconds = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) - $self->{began};
    $log->event("$self->{name}.end", @{ $self->{fields} }, @{ $self->{more} }, @more,
        STATUS => $self->{status}, DUR => $seconds)
        if $log->is_open;
}

sub DESTROY { $_[0]->end }

1;

__END__

=head1 NAME

NetLogger::Span - a span of time, as two events

=head1 SYNOPSIS

    {
        my $span = $log->span('Read', 'BLOCK.ID' => 7);    # logs Read.start
        $span->add(BYTES => read_block(7));
        $span->fail if ...;
    }                                                      # logs Read.end

=head1 DESCRIPTION

NAME.end has the fields of NAME.start, what was added, STATUS (0, or -1 after C<fail>) and DUR, the seconds that it took.
C<end> ends it before it goes out of scope, with more fields. Whether a C<die> ends it cannot be known: call C<fail>
where it is caught.

=cut
