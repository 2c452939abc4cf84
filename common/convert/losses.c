#include "config.h"

#include "convert/convert.h"

#include <inttypes.h>

/* What is said of losses: "FORMAT holds ", then this with their number. */
static const char *const loss_words[LOSS_COUNT] = {
    [LOSS_TYPES] = "text only: of %" PRIu64 " values it is lost that they were numbers or truths",
    [LOSS_UNSIGNED] = "unsigned integers as integers like others: %" PRIu64 " values",
    [LOSS_EMPTY] = "no standard field that is empty: %" PRIu64 " records have lost theirs",
    [LOSS_NAMES] = "no names but of letters, digits, '.', '_' and '-': %" PRIu64 " have '_' for other bytes",
    [LOSS_SPELLING] = "only levels of its own: %" PRIu64 " were spelt otherwise",
    [LOSS_FIELDS] = "not every field: %" PRIu64 " are lost",
    [LOSS_TIMES] = "not every digit of a time: %" PRIu64 " have lost some",
    [LOSS_RECORDS] = "not every record: %" PRIu64 " are lost",
};

void losses_say(const char *format, const uint64_t losses[LOSS_COUNT])
{
    for (size_t i = 0; i < LOSS_COUNT; i++) {
        char message[200];
        if (losses[i] == 0)
            continue;
        _Pragma("GCC diagnostic push");
        _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"");
        snprintf(message, sizeof message, loss_words[i], losses[i]);
        _Pragma("GCC diagnostic pop");
        program_error("%s holds %s", format, message);
    }
}
