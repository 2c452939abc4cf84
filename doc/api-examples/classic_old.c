/* The interface before 2000. With OLD_API, the functions do not take a separate format for constant fields. */
#define OLD_API
#include <NetLogger.h>

int main(void)
{
    NLhandle *log = NetLoggerOpen("testProg", "file://classic_old.log", 0);
    NetLoggerSetLevel(log, 1);
    int written = NetLoggerWrite(log, "WriteData", "SEND.SZ=%ld", 49332L) +
                  NetLoggerWriteLvl(log, 1, "ReadData", "RECV.SZ=%ld", 100L) +
                  NetLoggerWriteString(log, "Text", "A=1 B=two") + NetLoggerWriteStringLvl(log, 1, "Text", "A=1") +
                  NetLoggerGTWrite(log, 954415400, 5, "Begin", "BLOCK.ID=%d", 1) +
                  NetLoggerGTWriteLvl(log, 954415400, 6, 1, "Read", "BLOCK.ID=%d", 1) +
                  NetLoggerGTWriteString(log, 954415400, 7, "Written", "BLOCK.ID=1") +
                  NetLoggerGTWriteStringLvl(log, 1, 954415400, 8, "End", "BLOCK.ID=1");
    return NetLoggerClose(log) == 1 && written == 8 ? 0 : 1;
}
