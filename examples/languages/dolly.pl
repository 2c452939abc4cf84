#!/usr/bin/env perl
# The example dolly of README.md in Perl.
use strict;
use warnings;
use NetLogger;

my ($host, $port) = @ARGV;
$host //= 'dolly.lbl.gov';
$port //= 14830;
my $size = 49332;

my $log = NetLogger->open('testprog', "x-netlog://$host:$port");
$log->write('WriteData', "SEND.SZ=$size");
