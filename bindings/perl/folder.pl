# Prints the directory below PREFIX (folder.pl PREFIX) in which this perl searches for modules. If there is no such
# directory, prints the directory that perl searches with PERL5LIB=PREFIX/lib/perl5.
use strict;
use warnings;
use Config;

my ($prefix) = @ARGV;
$prefix =~ s{/+\z}{};
my @known = grep { index($_, "$prefix/") == 0 } @Config{qw(installvendorarch installsitearch)};
print @known ? substr($known[0], length($prefix) + 1) : "lib/perl5/$Config{archname}", "\n";
