/* Measures opentelemetry-cpp spans, with the batch processor and an exporter that discards the spans. */
#include "measure_spans.h"

#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/exporter.h>
#include <opentelemetry/sdk/trace/samplers/always_off.h>
#include <opentelemetry/sdk/trace/span_data.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/trace/propagation/http_trace_context.h>
#include <opentelemetry/trace/provider.h>

#include <map>
#include <string>

namespace sdk = opentelemetry::sdk::trace;
namespace trace = opentelemetry::trace;

class discarding : public sdk::SpanExporter
{
  public:
    std::unique_ptr<sdk::Recordable> MakeRecordable() noexcept override
    {
        return std::make_unique<sdk::SpanData>();
    }
    opentelemetry::sdk::common::ExportResult
    Export(const opentelemetry::nostd::span<std::unique_ptr<sdk::Recordable>> &) noexcept override
    {
        return opentelemetry::sdk::common::ExportResult::kSuccess;
    }
    bool ForceFlush(std::chrono::microseconds) noexcept override
    {
        return true;
    }
    bool Shutdown(std::chrono::microseconds) noexcept override
    {
        return true;
    }
};

class carrier : public opentelemetry::context::propagation::TextMapCarrier
{
  public:
    opentelemetry::nostd::string_view Get(opentelemetry::nostd::string_view key) const noexcept override
    {
        return key == "traceparent" ? header : opentelemetry::nostd::string_view();
    }
    void Set(opentelemetry::nostd::string_view key, opentelemetry::nostd::string_view value) noexcept override
    {
        if (key == "traceparent")
            header.assign(value.data(), value.size());
    }
    std::string header;
};

int main()
{
    const char *sql = "SELECT name FROM t";
    sdk::BatchSpanProcessorOptions options;
    options.max_queue_size = 4 * MEASURE_CALLS;
    options.schedule_delay_millis = std::chrono::milliseconds(5);
    auto provider = std::make_shared<sdk::TracerProvider>(
        sdk::BatchSpanProcessorFactory::Create(std::make_unique<discarding>(), options));
    auto tracer = provider->GetTracer("bench");
    auto flush = [&] { provider->ForceFlush(); };
    auto root = tracer->StartSpan("Root");
    trace::StartSpanOptions child;
    child.parent = root->GetContext();
    MEASURE("begin and end", flush, {
        auto span = tracer->StartSpan("Query", {{"A", i}, {"B", 2L * i}, {"C", sql}, {"D", 1.5}, {"E", i}}, child);
        span->SetAttribute("F", i);
        span->SetAttribute("G", 2L * i);
        span->SetAttribute("H", sql);
        span->SetAttribute("I", 1.5);
        span->SetAttribute("J", i);
        span->End();
    });
    auto off = std::make_shared<sdk::TracerProvider>(
        sdk::BatchSpanProcessorFactory::Create(std::make_unique<discarding>(), options),
        opentelemetry::sdk::resource::Resource::Create({}), std::make_unique<sdk::AlwaysOffSampler>());
    auto off_tracer = off->GetTracer("bench");
    MEASURE("not sampled", flush, {
        auto span = off_tracer->StartSpan("Query", {{"A", i}, {"B", 2L * i}, {"C", sql}, {"D", 1.5}, {"E", i}});
        span->End();
    });
    trace::propagation::HttpTraceContext propagator;
    carrier headers;
    opentelemetry::context::Context context, empty;
    context = trace::SetSpan(context, root);
    MEASURE("format", flush, propagator.Inject(headers, context));
    MEASURE("parse", flush, propagator.Extract(headers, empty));
    root->End();
}
