/* Buffers: growing arrays of bytes. */
#include <netlogger.h>
#include <string.h>

int main(void)
{
    nl_buffer buffer = {0};
    bool good = nl_buffer_append(&buffer, "two ", 4) && nl_buffer_append(&buffer, "words", 5);
    good = good && buffer.size == 9 && memcmp(buffer.data, "two words", 9) == 0;
    nl_buffer_free(&buffer);
    return good ? 0 : 1;
}
