#include "config.h"

#include "transport/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t nl_channel_read(nl_channel *channel, void *data, size_t size)
{
    if (channel->tls != NULL)
        return nl_tls_session_read(channel->tls, data, size);
    return recv(channel->fd, data, size, MSG_DONTWAIT);
}

ssize_t nl_channel_write(nl_channel *channel, const void *data, size_t size)
{
    if (channel->tls != NULL)
        return nl_tls_session_write(channel->tls, data, size);
    return send(channel->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void nl_channel_end(nl_channel *channel)
{
    if (channel->tls != NULL)
        nl_tls_session_end(channel->tls);
    shutdown(channel->fd, SHUT_WR);
}

void nl_channel_forget(nl_channel *channel)
{
    if (channel->tls != NULL)
        nl_tls_session_free(channel->tls);
    if (channel->fd >= 0)
        close(channel->fd);
    *channel = (nl_channel){.fd = -1};
}

void nl_channel_close(nl_channel *channel)
{
    if (channel->tls != NULL)
        nl_tls_session_end(channel->tls);
    nl_channel_forget(channel);
}
