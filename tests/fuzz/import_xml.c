/* nlconv's importer of xml: see importing.h. What it reads without libxml2 is what libxml2 would have read. */
#include "importing.h"

#include "convert/xml.h"

/* The same document with a blank that nlconv would not have written, so that libxml2 reads all of it. */
static void check_own_records(const uint8_t *data, size_t size)
{
    static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<log xmlns=\"" XML_NAMESPACE "\">\n",
                      other[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<log  xmlns=\"" XML_NAMESPACE "\">\n";
    fuzz_describer own = {{&fuzz_describer_kind}, false}, parsed = {{&fuzz_describer_kind}, false};
    sink in_own = {.out = &own.base}, in_parsed = {.out = &parsed.base};
    nl_buffer text = {0};
    if (size < sizeof head - 1 || memcmp(data, head, sizeof head - 1) != 0)
        return;
    nl_buffer_append(&text, other, sizeof other - 1);
    nl_buffer_append(&text, data + sizeof head - 1, size - (sizeof head - 1));
    fuzz_import(&xml_importer, (const char *)data, size, 0, &in_own);
    fuzz_import(&xml_importer, text.data, text.size, 0, &in_parsed);
    fuzz_expect(fuzz_same_bytes(&in_own.bytes, &in_parsed.bytes), "libxml2 reads the same records");
    fuzz_expect(in_own.report_count == in_parsed.report_count, "libxml2 finds as much malformed");
    nl_buffer_free(&text);
    fuzz_empty_sink(&in_own);
    fuzz_empty_sink(&in_parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_check_import(&xml_importer, data, size);
    check_own_records(data, size);
    return 0;
}
