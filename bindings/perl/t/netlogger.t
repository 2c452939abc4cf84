# Tests the basic functions of the module. The project's own tests are more thorough.
use strict;
use warnings;
use Test::More;
use File::Temp;
use NetLogger;

my $folder = File::Temp->newdir;
my $path   = "$folder/a.nlb";
my $log    = NetLogger->open('prog', $path);
ok($log->event('WriteData', 'SEND.SZ' => 49332, FILE => "a \"b\"\n", REAL => 0.5, NONE => undef), 'logged');
ok($log->write('Written', 'A=%d B=%s', 7, 'x y=z'), 'by a format');
$log->set_level('Error');
ok(!$log->event('Off'),       'below the threshold');
ok(!$log->is_on('Usage'),     'which is known before');
$log->close;
ok(!$log->event('Late'), 'closed');

my $reader = NetLogger->read($path);
my $record = $reader->next;
is($record->event, 'WriteData', 'event');
is_deeply([$record->pairs], ['SEND.SZ' => 49332, FILE => "a \"b\"\n", REAL => 0.5, NONE => ''], 'fields');
is($reader->next->get('B'), 'x y=z', 'told apart by the format');
ok(!defined $reader->next,           'the end');
ok(!eval { NetLogger->open('prog', 'file:///no/such/folder/a.log?quiet=yes') } && $@ =~ /No such file/, 'dies in words');
done_testing;
