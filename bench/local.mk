# Comparisons with peers: run by hand, bench/run [BUILD-FOLDER].
EXTRA_DIST += %D%/run
