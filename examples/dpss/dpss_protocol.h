/*
 * The block protocol: a client asks for blocks of a file, one request a block, and the server answers each in turn. All
 * numbers are in network byte order.
 *
 *   request   uint32 magic "DPSQ"   uint32 operation   uint64 block   uint32 block size
 *   response  uint32 magic "DPSA"   uint32 status      uint64 block   uint64 size      then that many bytes, for a READ
 *
 * Operations: SIZE asks how large the file is (the answer is in size, no bytes follow); READ asks for the bytes of a
 * block, fewer at the end of the file. A client may send further requests before the answers have come. Status is 0, or
 * why not.
 */
#ifndef DPSS_PROTOCOL_H
#define DPSS_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DPSS_DEFAULT_PORT "14835"

enum { DPSS_REQUEST_SIZE = 20, DPSS_RESPONSE_SIZE = 24, DPSS_BLOCK_MAX = 16 << 20 };

typedef enum dpss_operation { DPSS_SIZE = 1, DPSS_READ = 2 } dpss_operation;

typedef enum dpss_status { DPSS_DONE = 0, DPSS_BAD_REQUEST = 1, DPSS_NO_BLOCK = 2, DPSS_DISK_FAILED = 3 } dpss_status;

typedef struct dpss_request {
    uint32_t operation;
    uint64_t block;
    uint32_t block_size; /* bytes */
} dpss_request;

typedef struct dpss_response {
    uint32_t status;
    uint64_t block;
    uint64_t size; /* of the file, or of the bytes that follow */
} dpss_response;

/* Numbers to bytes and back. Parsing is false when the magic is missing. */
void dpss_put_request(const dpss_request *request, unsigned char out[DPSS_REQUEST_SIZE]);
bool dpss_parse_request(const unsigned char in[DPSS_REQUEST_SIZE], dpss_request *request);
void dpss_put_response(const dpss_response *response, unsigned char out[DPSS_RESPONSE_SIZE]);
bool dpss_parse_response(const unsigned char in[DPSS_RESPONSE_SIZE], dpss_response *response);

/* Sends or receives all of size bytes. False when the connection ended or failed; errno is 0 when it just ended. */
bool dpss_send(int fd, const void *data, size_t size);
bool dpss_receive(int fd, void *data, size_t size);

/* Splits "HOST:PORT" or "HOST" in place. */
void dpss_split_address(char *address, const char **host, const char **port);

#endif
