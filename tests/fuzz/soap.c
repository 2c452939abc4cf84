/*
 * Parses messages to nlagentd. nlagentd reads a message, or rejects it with a reason. The content of a message that was
 * read can be written and read again.
 */
#include "config.h"

#include "fuzz.h"

#include "agents/soap.c" /* NOLINT: the fuzz target includes the module */

static void check_call(const soap_call *call)
{
    nl_buffer out = {0};
    fuzz_expect(call->operation[0] != '\0', "a call has an operation");
    soap_begin(&out, "Again");
    for (size_t i = 0; i < call->count; i++) {
        fuzz_expect(call->arguments[i].name[0] != '\0', "an argument has a name");
        fuzz_expect(call->arguments[i].value < call->text.size, "a value is within the text");
        soap_put(&out, "value", call->text.data + call->arguments[i].value);
    }
    soap_end(&out, "Again");
    soap_call again;
    if (call->count < 1000) {
        fuzz_expect(soap_read(out.data, out.size, &again), "what was read can be written and read");
        fuzz_expect(again.count == call->count, "as many arguments");
        for (size_t i = 0; i < call->count; i++)
            fuzz_expect(
                strcmp(again.text.data + again.arguments[i].value, call->text.data + call->arguments[i].value) == 0,
                "of the same values");
        soap_call_free(&again);
    }
    nl_buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    soap_call call;
    char *message = fuzz_copy(data, size);
    if (soap_read(message, size, &call)) {
        check_call(&call);
    } else {
        nl_buffer fault = {0};
        fuzz_expect(*nl_error_message() != '\0', "a rejection has a message");
        soap_put_fault(&fault);
        nl_error_clear();
        nl_buffer_free(&fault);
    }
    soap_call_free(&call);
    free(message);
    return 0;
}
