#include "config.h"

#include "link.h"

#include "base/memory.h"
#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECT_MS = 2000,
    RECONNECT_MS = 200,
    WRITE_MS = 10000, /* maximum time for a write; sufficient for slow links */
    PING_MS = 5000,   /* interval of pings, which detect a silent server within some seconds */
    PINGS_MAX = 2,
    FLUSH_MS = 1000,
    API_MS = 3000,
    CALLBACKS_S = 10, /* maximum duration of a callback */
    SHARDS_DEFAULT = 4,
};

nl_status nats_failure(const char *what, natsStatus status, jsErrCode server_code)
{
    natsStatus last;
    const char *message = nats_GetLastError(&last);
    if (message == NULL || *message == '\0' || last != status)
        message = natsStatus_GetText(status);
    if (server_code == JSNotEnabledErr || status == NATS_NO_RESPONDERS)
        return nl_error_set(
            NL_ERROR_UNREACHABLE,
            "%s: JetStream is not available; start nats-server with -js, and check that its cluster has a leader",
            what);
    if (status == NATS_NO_SERVER)
        return nl_error_set(NL_ERROR_UNREACHABLE, "%s: cannot connect; is nats-server running there?", what);
    return nl_error_set(NL_ERROR_UNREACHABLE, "%s: %s", what, message);
}

/* Replaces the error handler of libnats, which prints errors. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *user)
{
    (void)connection, (void)subscription, (void)status, (void)user;
}

/* Called last among the callbacks of a connection. */
static void on_closed(natsConnection *connection, void *user)
{
    (void)connection;
    sem_post(user);
}

static natsStatus set_credentials(natsOptions *options, const nats_place *place)
{
    natsStatus status = NATS_OK;
    if (place->user != NULL)
        status = natsOptions_SetUserInfo(options, place->user, place->password);
    if (status == NATS_OK && place->creds != NULL)
        status = natsOptions_SetUserCredentialsFromFiles(options, place->creds, NULL);
    if (status == NATS_OK && place->tls)
        status = natsOptions_SetSecure(options, true);
    if (status == NATS_OK && place->ca != NULL)
        status = natsOptions_LoadCATrustedCertificates(options, place->ca);
    if (status == NATS_OK && place->cert != NULL)
        status = natsOptions_LoadCertificatesChain(options, place->cert, place->key);
    if (status == NATS_OK && place->tls_name != NULL)
        status = natsOptions_SetExpectedHostname(options, place->tls_name);
    return status;
}

static natsStatus set_options(natsOptions *options, nats_link *link, natsConnectionHandler on_reconnected, void *user)
{
    const nats_place *place = link->place;
    natsStatus status = natsOptions_SetServers(options, (const char **)place->servers, (int)place->server_count);
    if (status == NATS_OK)
        status = set_credentials(options, place);
    if (status != NATS_OK)
        return status;
    natsOptions_SetName(options, "netlogd");
    natsOptions_SetTimeout(options, CONNECT_MS);
    natsOptions_SetMaxReconnect(options, -1);
    natsOptions_SetReconnectWait(options, RECONNECT_MS);
    natsOptions_SetPingInterval(options, PING_MS);
    natsOptions_SetMaxPingsOut(options, PINGS_MAX);
    natsOptions_SetWriteDeadline(options, WRITE_MS);
    natsOptions_SetNoEcho(options, true);
    natsOptions_SetErrorHandler(options, on_error, NULL);
    natsOptions_SetClosedCB(options, on_closed, &link->closed);
    if (on_reconnected != NULL)
        natsOptions_SetReconnectedCB(options, on_reconnected, user);
    return NATS_OK;
}

nats_link *nats_link_open(const nats_place *place, natsConnectionHandler on_reconnected, void *user, bool *refused)
{
    nats_link *link = nl_memory_check(calloc(1, sizeof *link));
    link->place = place;
    sem_init(&link->closed, 0, 0);
    natsOptions *options = NULL;
    jsOptions api;
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = set_options(options, link, on_reconnected, user);
    bool good_options = status == NATS_OK;
    if (good_options)
        status = natsConnection_Connect(&link->connection, options);
    jsOptions_Init(&api);
    api.Wait = API_MS;
    if (status == NATS_OK)
        status = natsConnection_JetStream(&link->js, link->connection, &api);
    *refused = !good_options || status == NATS_CONNECTION_AUTH_FAILED || status == NATS_SSL_ERROR ||
               status == NATS_SECURE_CONNECTION_REQUIRED || status == NATS_SECURE_CONNECTION_WANTED;
    if (status != NATS_OK)
        nats_failure(place->name, status, 0);
    natsOptions_Destroy(options);
    if (status == NATS_OK)
        return link;
    nats_link_close(link);
    return NULL;
}

static void wait_for(sem_t *sign)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CALLBACKS_S;
    while (sem_timedwait(sign, &until) != 0 && errno == EINTR)
        ;
}

static void on_complete(void *user)
{
    sem_post(user);
}

void nats_subscription_end(natsSubscription *subscription)
{
    sem_t complete;
    if (subscription == NULL)
        return;
    sem_init(&complete, 0, 0);
    bool open = natsSubscription_SetOnCompleteCB(subscription, on_complete, &complete) == NATS_OK;
    natsSubscription_Unsubscribe(subscription);
    if (open)
        wait_for(&complete);
    natsSubscription_Destroy(subscription);
}

void nats_link_close(nats_link *link)
{
    if (link == NULL)
        return;
    jsCtx_Destroy(link->js);
    if (link->connection != NULL) {
        natsConnection_FlushTimeout(link->connection, FLUSH_MS);
        natsConnection_Close(link->connection);
        wait_for(&link->closed);
        natsConnection_Destroy(link->connection);
    }
    free(link);
}

/* ---- streams ---- */

/* Writes the description of a stream, which identifies the shard. */
static void describe(char text[NATS_NAME_SIZE], unsigned shard, unsigned shards)
{
    snprintf(text, NATS_NAME_SIZE, "netlogger shard %u of %u", shard + 1, shards);
}

/*
 * Reads the number of shards from the first stream's description. Sets *shards to 0 if the stream does not exist. Sets
 * *wrong to true and fails if netlogd did not create the stream.
 */
static nl_status count_shards(nats_link *link, const char *stream, unsigned *shards, bool *wrong)
{
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    unsigned first = 0;
    *shards = 0;
    natsStatus status = js_GetStreamInfo(&info, link->js, stream, NULL, &code);
    if (status == NATS_NOT_FOUND || code == JSStreamNotFoundErr)
        return NL_OK;
    if (status != NATS_OK)
        return nats_failure(link->place->name, status, code);
    const char *text = info->Config->Description;
    *wrong = text == NULL || sscanf(text, "netlogger shard %u of %u", &first, shards) != 2 || first != 1 ||
             *shards < 1 || *shards > NATS_SHARDS_MAX;
    jsStreamInfo_Destroy(info);
    return *wrong ? nl_error_set(NL_ERROR_UNREACHABLE, "%s: stream %s was not created by netlogd; use another stream",
                                 link->place->name, stream)
                  : NL_OK;
}

static nl_status find_shards(nats_link *link, bool *wrong)
{
    const nats_place *place = link->place;
    char name[NATS_NAME_SIZE];
    unsigned shards;
    nats_stream_name(place, 0, 2, name);
    if (count_shards(link, name, &shards, wrong) != NL_OK)
        return NL_FAILED;
    if (shards == 0 && count_shards(link, place->stream, &shards, wrong) != NL_OK)
        return NL_FAILED;
    *wrong = shards != 0 && place->shards != 0 && shards != place->shards;
    if (*wrong)
        return nl_error_set(NL_ERROR_UNREACHABLE, "%s: the stream has %u shard%s, not %u", place->name, shards,
                            nl_plural(shards), place->shards);
    link->shards = shards != 0 ? shards : place->shards != 0 ? place->shards : SHARDS_DEFAULT;
    *wrong = link->shards < place->of_shares;
    return *wrong ? nl_error_set(NL_ERROR_UNREACHABLE, "%s: the stream has %u shard%s, too few for %u readers",
                                 place->name, link->shards, nl_plural(link->shards), place->of_shares)
                  : NL_OK;
}

static nl_status make_stream(nats_link *link, unsigned shard, bool *wrong)
{
    const nats_place *place = link->place;
    char name[NATS_NAME_SIZE], description[NATS_NAME_SIZE], subject[NATS_NAME_SIZE];
    nats_stream_name(place, shard, link->shards, name);
    describe(description, shard, link->shards);
    snprintf(subject, sizeof subject, "%s.*.*.%u", place->subject, shard + 1);
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    natsStatus status = js_GetStreamInfo(&info, link->js, name, NULL, &code);
    if (status == NATS_OK) {
        bool ours = info->Config->SubjectsLen == 1 && strcmp(info->Config->Subjects[0], subject) == 0;
        jsStreamInfo_Destroy(info);
        *wrong = !ours;
        return ours ? NL_OK
                    : nl_error_set(NL_ERROR_UNREACHABLE, "%s: stream %s has subjects other than %s", place->name, name,
                                   subject);
    }
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Description = description;
    config.Subjects = (const char *[]){subject};
    config.SubjectsLen = 1;
    config.Replicas = place->replicas;
    config.MaxAge = place->max_age_ns;
    config.MaxBytes = place->max_bytes > 0 ? (int64_t)place->max_bytes : -1;
    config.Discard = place->discard_old ? js_DiscardOld : js_DiscardNew;
    /* Servers reject a duplicate window that is longer than max_age. */
    config.Duplicates =
        place->max_age_ns > 0 && place->max_age_ns < place->window_ns ? place->max_age_ns : place->window_ns;
    if (status == NATS_NOT_FOUND || code == JSStreamNotFoundErr)
        status = js_AddStream(NULL, link->js, &config, NULL, &code);
    return status == NATS_OK || code == JSStreamNameExistErr ? NL_OK : nats_failure(place->name, status, code);
}

nl_status nats_link_find_streams(nats_link *link, bool *wrong)
{
    *wrong = false;
    nl_status status = find_shards(link, wrong);
    /* Create the first stream last. If a client finds the first stream, all streams exist. */
    for (unsigned i = link->shards; status == NL_OK && i > 0; i--)
        status = make_stream(link, i - 1, wrong);
    return status;
}
