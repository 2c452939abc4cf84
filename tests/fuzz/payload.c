/* Reads a whole record as in a ring. A killed process may leave any bytes there. */
#include "text_round_trip.h"

#include "log/payload.h"

/*
 * Encodes the record again. Checks that the payload has the same size, decodes to the same record, and is rejected when
 * it is truncated. Does not compare the bytes, because any non-zero byte means true.
 */
static void check_put(const nl_record *record, size_t size)
{
    fuzz_expect(nl_payload_size(record) == size, "a record takes as many bytes as it was read from");
    char *payload = malloc(size);
    nl_record *back = nl_record_new();
    nl_buffer meant = {0}, read = {0};
    nl_payload_put(payload, record);
    fuzz_expect(nl_payload_get(payload, size, back), "what was put can be got");
    fuzz_put_record(&meant, record);
    fuzz_put_record(&read, back);
    fuzz_expect(fuzz_same_bytes(&meant, &read), "a record comes back as it was");
    for (size_t cut = 0; cut < size; cut += 1 + cut / 8) {
        nl_record_clear(back);
        char *part = fuzz_copy(payload, cut);
        fuzz_expect(!nl_payload_get(part, cut, back), "half a record is none");
        free(part);
    }
    nl_buffer_free(&meant);
    nl_buffer_free(&read);
    nl_record_free(back);
    free(payload);
}

/* Checks that a line for the record can be read again, for any values of the record. */
static void check_line(const nl_record *record, nl_format format)
{
    nl_buffer line = fuzz_encode(record, format);
    nl_record *back = nl_record_new();
    fuzz_expect(nl_record_decode(back, format, NL_FRACTION_DECIMAL, line.data, line.size) == NL_OK,
                "what was encoded decodes");
    fuzz_expect(back->field_count == record->field_count, "no value forges a field");
    nl_record_free(back);
    fuzz_check_line(format, (const uint8_t *)line.data, line.size);
    nl_buffer_free(&line);
}

static void check_packed(const nl_record *record)
{
    nl_buffer packed = {0};
    nl_record *back = nl_record_new();
    fuzz_expect(nl_record_pack(record, &packed), "a small record can be packed");
    fuzz_expect(nl_record_unpack(back, packed.data, packed.size) == NL_OK, "what was packed can be unpacked");
    fuzz_expect(back->field_count == record->field_count, "it has all its fields");
    nl_record_free(back);
    nl_buffer_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *payload = fuzz_copy(data, size);
    nl_record *record = nl_record_new();
    if (nl_payload_get(payload, size, record)) {
        check_put(record, size);
        check_line(record, NL_FORMAT_ULM);
        check_line(record, NL_FORMAT_BP);
        check_packed(record);
    }
    nl_record_free(record);
    free(payload);
    return 0;
}
