/* The protocol of MySQL and MariaDB (MySQL Internals, "Client/Server Protocol"). */
#include "config.h"

#include "trace/protocol.h"
#include "trace/sql.h"

#include <stdio.h>
#include <string.h>

enum {
    HEAD_SIZE = 4,
    COMMAND_QUERY = 3,
    COMMAND_PREPARE = 0x16,
    COMMAND_DATA = 0x18,
    COMMAND_CLOSE = 0x19,
    OK = 0,
    END = 0xfe,
    ERROR = 0xff,
    MORE_RESULTS = 8,
    END_SIZE = 8
};

typedef struct mysql_packet {
    const unsigned char *payload;
    uint32_t length; /* size of the payload in bytes, which may be more than the captured bytes */
    uint8_t sequence;
} mysql_packet;

static uint32_t read_mysql_number(const unsigned char *at, size_t size)
{
    uint32_t value = 0;
    while (size-- > 0)
        value = value << 8 | at[size];
    return value;
}

static bool read_packet(const protocol_bytes *bytes, mysql_packet *packet)
{
    if (bytes->captured <= HEAD_SIZE)
        return false;
    const unsigned char *b = (const unsigned char *)bytes->data;
    *packet = (mysql_packet){b + HEAD_SIZE, read_mysql_number(b, 3), b[3]};
    return packet->length > 0;
}

/* Returns whether a packet is the client's answer to the server's greeting: capabilities, maximum size, character set,
 * 19 zero bytes, the user. */
static bool is_login(const protocol_bytes *bytes, const mysql_packet *packet)
{
    enum { ZEROS_AT = 9, ZEROS_SIZE = 19, FIXED_SIZE = 32 };
    static const char zeros[ZEROS_SIZE] = "";
    return packet->sequence == 1 && packet->length > FIXED_SIZE && bytes->captured > HEAD_SIZE + FIXED_SIZE &&
           packet->length + HEAD_SIZE == bytes->size && memcmp(packet->payload + ZEROS_AT, zeros, ZEROS_SIZE) == 0;
}

/* Skips packets to which the server does not reply: the end of a prepared statement, and the data of its parameters.
 * Drivers send these packets together with their next command. Returns whether it has skipped packets. */
static bool skip_silent_packets(protocol_bytes *bytes)
{
    enum { STATEMENT_SIZE = 5, PARAMETER_SIZE = 7 };
    mysql_packet packet;
    bool skipped = false;
    while (read_packet(bytes, &packet) && packet.sequence == 0 &&
           ((*packet.payload == COMMAND_CLOSE && packet.length == STATEMENT_SIZE) ||
            (*packet.payload == COMMAND_DATA && packet.length >= PARAMETER_SIZE)) &&
           (uint64_t)packet.length + HEAD_SIZE < bytes->size) {
        size_t size = (size_t)packet.length + HEAD_SIZE, captured = bytes->captured < size ? bytes->captured : size;
        bytes->data += captured;
        bytes->captured -= captured;
        bytes->size -= size;
        skipped = true;
    }
    return skipped;
}

static bool read_command(const protocol_bytes *bytes, protocol_request *request)
{
    static const struct {
        const char *verb;
        bool silent;
    } commands[] = {[0x01] = {"quit", true},          [0x02] = {"use", false},           [COMMAND_QUERY] = {"", false},
                    [0x04] = {"fields", false},       [0x09] = {"statistics", false},    [0x0e] = {"ping", false},
                    [0x11] = {"authenticate", false}, [COMMAND_PREPARE] = {"", false},   [0x17] = {"execute", false},
                    [COMMAND_DATA] = {"data", true},  [COMMAND_CLOSE] = {"close", true}, [0x1a] = {"reset", false},
                    [0x1b] = {"option", false},       [0x1c] = {"fetch", false},         [0x1f] = {"reset", false}};
    mysql_packet packet;
    if (!read_packet(bytes, &packet))
        return false;
    if (is_login(bytes, &packet)) {
        snprintf(request->verb, sizeof request->verb, "login");
        return true;
    }
    uint8_t command = *packet.payload;
    if (packet.sequence != 0 || command >= sizeof commands / sizeof *commands || commands[command].verb == NULL ||
        (uint64_t)packet.length + HEAD_SIZE != bytes->size)
        return false;
    snprintf(request->verb, sizeof request->verb, "%s", commands[command].verb);
    request->silent = commands[command].silent;
    if (command != COMMAND_QUERY && command != COMMAND_PREPARE)
        return true;
    sql_read_statement(request, bytes->data + HEAD_SIZE + 1, bytes->captured - HEAD_SIZE - 1, SQL_MYSQL);
    return *request->verb != '\0';
}

static bool read_mysql_request(const protocol_bytes *bytes, protocol_request *request)
{
    protocol_bytes rest = *bytes;
    bool skipped = skip_silent_packets(&rest);
    if (read_command(&rest, request))
        return true;
    memset(request, 0, sizeof *request);
    return skipped; /* the next command is unknown or not captured */
}

/*
 * Returns whether the bytes end with a packet that ends a result. The payload of this packet has 5 bytes, or at least 7
 * bytes with newer clients.
 */
static bool ends_result(const protocol_bytes *bytes)
{
    const unsigned char *tail = (const unsigned char *)(bytes->tail_size > 0 ? bytes->tail : bytes->data);
    size_t size = bytes->tail_size > 0 ? bytes->tail_size : bytes->captured;
    if (size < END_SIZE || (bytes->tail_size == 0 && bytes->captured < bytes->size))
        return false;
    const unsigned char *last = tail + size - END_SIZE;
    if (last[0] == 0 && last[1] == 0 && last[3] == END) /* length, sequence, END, warnings, status */
        return (last[6] & MORE_RESULTS) == 0;
    return last[1] == END && last[2] == 0 && last[3] == 0 && (last[4] & MORE_RESULTS) == 0;
}

static protocol_progress read_mysql_reply(const protocol_bytes *bytes, const protocol_request *request,
                                          protocol_reply *reply)
{
    mysql_packet packet;
    if (!reply->begun && bytes->size > 0 && bytes->size <= HEAD_SIZE)
        return PROTOCOL_MORE;
    bool first = !reply->begun && read_packet(bytes, &packet);
    reply->begun = true;
    if (first && packet.payload[0] == ERROR && bytes->captured >= HEAD_SIZE + 3) {
        snprintf(reply->status, sizeof reply->status, "%u", read_mysql_number(packet.payload + 1, 2));
        reply->failed = true;
    }
    if (first && packet.length + HEAD_SIZE == bytes->size &&
        (packet.payload[0] == ERROR || (packet.payload[0] == OK && strcmp(request->verb, "login") == 0) ||
         (packet.payload[0] == OK && packet.length >= 7)))
        return PROTOCOL_COMPLETE;
    return ends_result(bytes) ? PROTOCOL_COMPLETE : PROTOCOL_UNKNOWN;
}

const protocol protocol_mysql = {"mysql", "OBJECT", true, read_mysql_request, read_mysql_reply, NULL};
