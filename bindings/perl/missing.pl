# Prints the requirement for building the binding that this perl lacks, and exits with 1. Prints nothing if all are met.
use strict;
use Config;

sub missing {
    print("@_\n"), exit 1;
}
missing('perl is older than 5.10') if $] < 5.010;
missing('no ExtUtils::MakeMaker')  if !eval { require ExtUtils::MakeMaker };
missing('no perl.h')               if !-e "$Config{archlibexp}/CORE/perl.h";
