package NetLogger::Context;
use strict;
use warnings;
use overload bool => sub { length $_[0]->traceparent }, fallback => 1;

sub _of { my ($class, $bytes) = @_; return bless { bytes => $bytes }, $class }
sub new { my ($class, $traceparent) = @_; return $class->_of(NetLogger::_parse_traceparent($traceparent // '')) }
sub from_environment { return $_[0]->_of(NetLogger::_parse_traceparent(undef)) }
sub current { return $_[0]->_of(NetLogger::_current()) }
sub traceparent { return NetLogger::_format_traceparent($_[0]{bytes}) }

sub attach {
    my ($self) = @_;
    return bless { previous => NetLogger::_attach($self->{bytes}) }, 'NetLogger::Context::Attached';
}

package NetLogger::Context::Attached;

sub DESTROY { my ($self) = @_; NetLogger::_attach($self->{previous}) }

package NetLogger::Span;

sub begin {
    my ($class, $log, $name, @fields) = @_;
    my $self = $class->begin_detached($log, NetLogger::Context->current, $name, @fields);
    $self->{attached} = $self->{context}->attach if defined $self->{state};
    return $self;
}

sub begin_detached {
    my ($class, $log, $parent, $name, @fields) = @_;
    my ($context, $state) = $log->_begin_span('Usage', $name, $parent->{bytes}, @fields);
    return bless {
        log => $log, name => $name, more => [], status => 0, state => $state, context => NetLogger::Context->_of($context),
    }, $class;
}

sub context { return $_[0]{context} }

sub add {
    my ($self, @more) = @_;
    push @{ $self->{more} }, @more;
}

sub set_status { $_[0]{status} = $_[1] }
sub fail { $_[0]{status} = -1 }

sub end {
    my ($self, @more) = @_;
    delete $self->{attached};
    my $state = delete $self->{state};
    my $log = delete $self->{log} or return;
    $log->_end_span($state, $self->{name}, $self->{status}, @{ $self->{more} }, @more) if defined $state && $log->is_open;
}

sub DESTROY { $_[0]->end }

1;

__END__

=head1 NAME

NetLogger::Span - spans of requests, and contexts that connect them

=head1 SYNOPSIS

    my $attached = NetLogger::Context->new($header{traceparent})->attach;
    {
        my $span = $log->span('Read', 'BLOCK.ID' => 7);    # logs Read.start
        $log->event('Seek', OFFSET => 0);                  # has the ID of the span
        $span->add(BYTES => read_block(7));
        $span->fail if ...;
        call_server(traceparent => $span->context->traceparent);
    }                                                      # logs Read.end

=head1 DESCRIPTION

C<< $log->span(NAME, FIELD => VALUE, ...) >> logs NAME.start and makes the span the current context of the thread. The span
ends, and logs NAME.end, at C<end> or when the object goes out of scope. The parent is the current context. If the current
context is empty, the span begins a trace. NAME.end has the fields that were added, and STATUS: 0, the value of C<set_status>, or -1
after C<fail>. A C<die> does not set STATUS: call C<fail> where the exception is caught.

C<< NetLogger::Span->begin_detached($log, $context, NAME, FIELD => VALUE, ...) >> begins a span whose parent is C<$context>.
This span does not become the current context, so spans can overlap.

C<< $span->context >> is the context of the span (L</Contexts>). A span logs nothing if its trace is not sampled or its log is off.

=head1 Contexts

A NetLogger::Context is a trace and a span in it (W3C Trace Context). A context is true unless it is empty.

    NetLogger::Context->new($traceparent)     the context of a header; empty if it is invalid
    NetLogger::Context->from_environment      the context in TRACEPARENT, which a program inherits
    NetLogger::Context->current               the context of the thread
    $context->traceparent                     the header for requests, and the value of TRACEPARENT; "" if the context is empty
    $context->attach                          makes the context current as long as the returned object exists
    NetLogger::join_tracestate(@headers)      joins tracestate headers into one value; "" if one is invalid

=cut
