/* The interface of the original toolkit (1998 to 2004). */
#include <NetLogger.h>
#include <netlogger.h>
#include <fcntl.h>
#include <unistd.h>

/* Writes events with a known time in seconds and microseconds. */
static int at_a_time(NLhandle *log, long sec)
{
    return NetLoggerGTWrite(log, sec, 5, "Begin", "", "BLOCK.ID=%d", 1) +
           NetLoggerGTWriteLvl(log, sec, 6, 1, "Read", "", "BLOCK.ID=%d", 1) +
           NetLoggerGTWriteString(log, sec, 7, "Written", "", "BLOCK.ID=1") +
           NetLoggerGTWriteStringLvl(log, 1, sec, 8, "End", "", "BLOCK.ID=1");
}

int main(void)
{
    NLhandle *log = NetLoggerOpen("testProg", "file://classic.log", NL_ENV);
    if (log == NULL)
        return 1;
    NetLoggerSetLevel(log, 1);
    NetLoggerSetTag(log, "RUN=7");
    NetLoggerSetGlobalTag("SITE=lbl");
    int written = NetLoggerWrite(log, "WriteData", "", "SEND.SZ=%ld", 49332L) +
                  NetLoggerWriteLvl(log, 1, "ReadData", "", "RECV.SZ=%ld", 100L) +
                  NetLoggerWriteString(log, "Text", "", "A=1 B=two") +
                  NetLoggerWriteStringLvl(log, 1, "Text", "", "A=1 B=two") +
                  NetLoggerFastWrite(log, "Fast", "N=%d", 3) + at_a_time(log, 954415400);
    NetLoggerFlush(log);
    NetLoggerClose(log);

    int fd = open("classic.fd.log", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    NLhandle *other = NetLoggerOpenFd("testProg", fd, 0);
    written += NetLoggerWrite(other, "Opened", "", "FD=%d", fd);
    int closed = NetLoggerClose(other);
    close(fd); /* NetLoggerClose does not close the descriptor */

    /* NetLogOpen connects to a collector. */
    int collector = NetLogOpen("127.0.0.1", DPSS_NETLOGGER_PORT);
    if (collector >= 0)
        close(collector);

    /* NetLoggerWriteText takes the fields as text, and also accepts a log that nl_open opened. */
    nl_log *present = nl_open("testProg", "file:classic.log");
    written += NetLoggerWriteText(present, "Text", "A=1 B=two");
    nl_close(present);
    return written == 11 && closed == 1 ? 0 : 1;
}
