# What this perl lacks for building the library's module, in a few words and status 1; nothing when it has all.
use strict;
use Config;

sub missing {
    print("@_\n"), exit 1;
}
missing('perl is older than 5.10') if $] < 5.010;
missing('no ExtUtils::MakeMaker')  if !eval { require ExtUtils::MakeMaker };
missing('no perl.h')               if !-e "$Config{archlibexp}/CORE/perl.h";
