/* Buffers: bytes that grow. */
#include <netlogger.h>
#include <string.h>

int main(void)
{
    nl_buffer buffer = {0};
    nl_buffer_append(&buffer, "two ", 4);
    nl_buffer_reserve(&buffer, 16); /* room for what is put there by hand */
    memcpy(buffer.data + buffer.size, "words", 5);
    buffer.size += 5;
    int different = buffer.size != 9 || memcmp(buffer.data, "two words", 9) != 0;
    nl_buffer_free(&buffer);
    return different;
}
