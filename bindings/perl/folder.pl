# Prints where below a prefix, folder.pl PREFIX, this perl looks for modules; where PERL5LIB=PREFIX/lib/perl5 has it look when
# it does not.
use strict;
use warnings;
use Config;

my ($prefix) = @ARGV;
$prefix =~ s{/+\z}{};
my @known = grep { index($_, "$prefix/") == 0 } @Config{qw(installvendorarch installsitearch)};
print @known ? substr($known[0], length($prefix) + 1) : "lib/perl5/$Config{archname}", "\n";
