#!/usr/bin/env perl
# The spans of README.md in Perl.
use strict;
use warnings;
use NetLogger;

my $log = NetLogger->open('spans', $ARGV[0]);
{
    my $request = $log->span('Request', ID => 7);
    {
        my $query = $log->span('Query', SQL => 'SELECT 1');
        $log->event('Row', N => 1);
        $query->set_status(3);
    }
    my $copy = NetLogger::Span->begin_detached($log, $request->context, 'Copy');
    $copy->end(BYTES => 700);
    $log->event('Reply');
}
$log->event('Idle');
$log->close;
