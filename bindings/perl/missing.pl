# If this perl lacks something that building the binding requires, prints the first such requirement and exits with 1.
use strict;
use Config;

sub missing {
    print("@_; run packaging/install-dependencies build\n"), exit 1;
}
missing('perl is older than 5.10') if $] < 5.010;
missing('no ExtUtils::MakeMaker')  if !eval { require ExtUtils::MakeMaker };
missing('no perl.h')               if !-e "$Config{archlibexp}/CORE/perl.h";
