/*
 * Writes XML that conforms to the schema doc/netlogger.xsd:
 *
 *   <log xmlns="urn:netlogger:log:1">
 *   <record time="2000-03-30T11:23:20.957943Z" event="WriteData" level="Info" host="h" prog="p"><f n="SEND.SZ"
 *     t="int">49332</f></record>
 *   </log>
 *
 * Values that XML cannot represent (invalid UTF-8, control characters) are in base64. An f element with such a value
 * has e="base64". A record element lists its attributes in base64, as in base64="host prog".
 */
#include "config.h"

#include "convert/json_text.h"
#include "program/record_xml.h"

typedef struct xml_writer {
    exporter base;
    time_text time;
    nl_buffer text; /* text of the time */
} xml_writer;

static void xml_write_close_writer(exporter *base)
{
    nl_buffer_free(&((xml_writer *)base)->text);
}

#define PUT(out, literal) nl_buffer_append(out, literal, sizeof(literal) - 1)

static void xml_write_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    xml_writer *w = (xml_writer *)base;
    w->text.size = 0;
    time_text_put(&w->time, record->time_ns, &w->text);
    record_xml_put(record, (nl_string){w->text.data, w->text.size}, NULL, &s->bytes);
    PUT(&s->bytes, "\n");
}

static void xml_write_begin(exporter *base, sink *s)
{
    (void)base;
    PUT(&s->bytes, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<log xmlns=\"" XML_NAMESPACE "\">\n");
}

static void xml_write_end(exporter *base, sink *s)
{
    (void)base;
    PUT(&s->bytes, "</log>\n");
}

const exporter_kind xml_exporter = {
    .name = "xml",
    .what = "XML that conforms to doc/netlogger.xsd",
    .size = sizeof(xml_writer),
    .close = xml_write_close_writer,
    .begin = xml_write_begin,
    .put = xml_write_put,
    .end = xml_write_end,
};
