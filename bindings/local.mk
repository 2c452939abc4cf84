# The library in other languages, a folder each. C++ is a header.
include_HEADERS += %D%/cxx/netlogger.hpp
