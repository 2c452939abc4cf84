package Log::Any::Adapter::NetLogger;
use strict;
use warnings;
use Log::Any::Adapter::Util ();
use NetLogger ();
use parent 'Log::Any::Adapter::Base';

our $VERSION = '1.0.0';

my %level = (
    trace     => 'Debug',
    debug     => 'Debug',
    info      => 'Usage',
    notice    => 'Important',
    warning   => 'Warning',
    error     => 'Error',
    critical  => 'Error',
    alert     => 'Alert',
    emergency => 'Emergency',
);

sub init {
    my ($self) = @_;
    $self->{log} ||= NetLogger->open($self->{prog} // $0, $self->{url});
}

# Besides the message, Log::Any passes a hash of context and, at the end, any structured data.
sub structured {
    my ($self, $level, $category, @items) = @_;
    my (@text, @fields);
    for my $item (@items) {
        if (ref $item eq 'HASH') {
            push @fields, map { $_ => _plain($item->{$_}) } sort keys %$item;
        } else {
            push @text, _plain($item);
        }
    }
    $self->{log}->log($level{$level} // 'Usage', length $category ? $category : 'main', MSG => join(' ', @text), @fields);
}

sub _plain {
    my ($value) = @_;
    return $value if !ref $value || eval { $value->can('(""') };
    return Log::Any::Adapter::Util::dump_one_line($value);
}

for my $method (Log::Any::Adapter::Util::detection_methods()) {
    (my $name = $method) =~ s/^is_//;
    no strict 'refs';
    *{$method} = sub { $_[0]{log}->is_on($level{$name} // 'Usage') };
}

1;

__END__

=head1 NAME

Log::Any::Adapter::NetLogger - Log::Any into a NetLogger log

=head1 SYNOPSIS

    use Log::Any::Adapter;
    Log::Any::Adapter->set('NetLogger', prog => 'testprog', url => 'x-netlog://localhost');

    use Log::Any '$logger';
    $logger->info('read', { BLOCKS => 7 });

=head1 DESCRIPTION

The event is the category. The fields are MSG, and the members of the context and of a hash at the end of the call. The
options are C<log>, which is an open log, or C<url> and C<prog>, with which the adapter opens a log. trace becomes Debug,
info becomes Usage, notice becomes Important, and critical becomes Error. The threshold of the log determines which levels
are on.

=cut
