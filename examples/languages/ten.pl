#!/usr/bin/env perl
# The ten events of README.md in Perl.
use strict;
use warnings;
use utf8;
use NetLogger;

my $infinity = 9**9**9;
my $log      = NetLogger->open('ten', $ARGV[0]);
$log->event('Ten.Integers', ZERO => 0, NEGATIVE => -49332, LEAST => -9223372036854775807 - 1, MOST => 9223372036854775807);
$log->event(
    'Ten.Reals',
    TENTH    => 0.1,
    LARGE    => -1.5e300,
    NAN      => -sin($infinity),
    INFINITE => $infinity,
    NEGATIVE => -$infinity
);
$log->debug('Ten.Truth', YES => !!1, NO => !!0);
$log->warning('Ten.Quotes', TEXT => q(say "hello", \\ and 'goodbye' A=1));
$log->error('Ten.Lines', TEXT => "one\ntwo\tthree\r\n");
$log->important('Ten.Utf8', TEXT => 'Grüße, 世界 🌍');
$log->system('Ten.Empty', TEXT => '');
$log->event('Ten.Huge', TEXT => '0123456789' x 10000, AFTER => 1);
$log->alert('Ten.Nothing');
$log->event('Ten.Many', map { sprintf('F%02d', $_) => $_ } 1 .. 16);
$log->close;
