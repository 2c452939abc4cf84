/*
 * The block protocol: a client sends one request per block of a file, and the server answers the requests in order. All
 * numbers are in network byte order. The functions have no state.
 *
 *   request   uint32 magic "DPSQ"   uint32 operation   uint64 block   uint32 block size
 *   response  uint32 magic "DPSA"   uint32 status      uint64 block   uint64 size      then that many bytes, for a READ
 *
 * There are two operations. SIZE requests the size of the file; no bytes follow its response. READ requests the bytes
 * of a block; the last block of a file may be shorter. A client may send requests before it has received earlier
 * responses. The status is 0 or an error.
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
    uint64_t size; /* size of the file, or number of bytes that follow */
} dpss_response;

/* Convert requests and responses to bytes and back. The parsers return false if the magic number is missing. */
void dpss_put_request(const dpss_request *request, unsigned char out[DPSS_REQUEST_SIZE]);
bool dpss_parse_request(const unsigned char in[DPSS_REQUEST_SIZE], dpss_request *request);
void dpss_put_response(const dpss_response *response, unsigned char out[DPSS_RESPONSE_SIZE]);
bool dpss_parse_response(const unsigned char in[DPSS_RESPONSE_SIZE], dpss_response *response);

/* Send or receive `size` bytes. Return false and set errno on failure; errno is 0 if the peer closed the connection. */
bool dpss_send(int fd, const void *data, size_t size);
bool dpss_receive(int fd, void *data, size_t size);

/* Splits "HOST:PORT" or "HOST" in place; host and port point into `address`. */
void dpss_split_address(char *address, const char **host, const char **port);

#endif
