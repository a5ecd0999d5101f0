#include "resource.h"

#include <sonde/spaces/object.h>

#include "collector.h"
#include "common/services.h"
#include "launches.h"
#include "sinks.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sonde::cuda {

namespace {

template <typename Record>
void emit(uint32_t type, Record &record) {
  SONDE_RECORD_INIT(&record, SONDE_SPACE_OBJECT, type, sonde_stamp());
  sinks().each([&](const Sink &sink, uint32_t) {
    if (sink.object != nullptr && sonde_wants(sink.object, type))
      services().capture->emit(sink.session, &record.header);
  });
}

bool wanted(uint32_t type) {
  bool any = false;
  sinks().each([&](const Sink &sink, uint32_t) { any |= sink.object != nullptr && sonde_wants(sink.object, type); });
  return any;
}

uint32_t graph_id(const CuptiApi &api, void *graph) {
  uint32_t id = 0;
  if (graph == nullptr || api.get_graph_id == nullptr || api.get_graph_id(graph, &id) != kCuptiSuccess) return 0;
  return id;
}

uint32_t graph_exec_id(const CuptiApi &api, void *graph_exec) {
  uint32_t id = 0;
  if (graph_exec == nullptr || api.get_graph_exec_id == nullptr) return 0;
  return api.get_graph_exec_id(graph_exec, &id) == kCuptiSuccess ? id : 0;
}

uint32_t context_id(const CuptiApi &api, void *context) {
  uint32_t id = 0;
  if (context == nullptr || api.get_context_id == nullptr) return 0;
  return api.get_context_id(context, &id) == kCuptiSuccess ? id : 0;
}

void emit_graph(const CuptiApi &api, uint32_t point, const GraphData &data) {
  if (!wanted(SONDE_OBJECT_GRAPH)) return;
  sonde_object_graph_t record = {};
  const bool exec = point == kResourceGraphExecCreated || point == kResourceGraphExecDestroyStarting;
  record.graph = graph_id(api, data.graph);
  if (point == kResourceGraphCloned) record.source = graph_id(api, data.original_graph);
  if (exec) record.graph_exec = graph_exec_id(api, data.graph_exec);
  record.state = point == kResourceGraphDestroyStarting || point == kResourceGraphExecDestroyStarting ? 1 : 0;
  emit(SONDE_OBJECT_GRAPH, record);
}

void emit_module(const CuptiApi &api, uint32_t point, void *context, const ModuleData &data) {
  if (!wanted(SONDE_OBJECT_MODULE)) return;
  sonde_object_module_t record = {};
  record.module = data.module;
  record.bytes = data.bytes;
  record.context = context_id(api, context);
  record.state = point == kResourceModuleUnloadStarting ? 1 : 0;
  if (record.state == 0 && data.code != nullptr) record.hash = XXH3_64bits(data.code, data.bytes);
  emit(SONDE_OBJECT_MODULE, record);
}

void emit_stream_end(const CuptiApi &api, const ResourceData &data) {
  if (!wanted(SONDE_OBJECT_STREAM) || api.get_stream_id == nullptr) return;
  uint32_t id = 0;
  if (api.get_stream_id(data.context, data.stream, 0, &id) != kCuptiSuccess) return;
  sonde_object_stream_t record = {};
  record.stream = id;
  record.context = context_id(api, data.context);
  record.state = 1;
  emit(SONDE_OBJECT_STREAM, record);
}

}  // namespace

void on_callback(void *, uint32_t domain, uint32_t point, const void *data) {
  if (domain == kDomainDriver) {
    // Of the driver only launch calls are subscribed to, and the call that tells what this costs. Each calls back at
    // its begin and at its end.
    if (point != kDriverGetVersion && static_cast<const CallData *>(data)->site == kCallEnter) count_launch();
    return;
  }
  if (domain != kDomainResource || data == nullptr || sinks().empty()) return;
  const CuptiApi *api = Collector::instance().api();
  if (api == nullptr) return;
  const auto &resource = *static_cast<const ResourceData *>(data);
  switch (point) {
    case kResourceGraphCreated:
    case kResourceGraphDestroyStarting:
    case kResourceGraphCloned:
    case kResourceGraphExecCreated:
    case kResourceGraphExecDestroyStarting:
      if (resource.descriptor != nullptr) emit_graph(*api, point, *static_cast<const GraphData *>(resource.descriptor));
      break;
    case kResourceModuleLoaded:
    case kResourceModuleUnloadStarting:
      if (resource.descriptor != nullptr) {
        emit_module(*api, point, resource.context, *static_cast<const ModuleData *>(resource.descriptor));
      }
      break;
    case kResourceStreamDestroyStarting:
      emit_stream_end(*api, resource);
      break;
    default:
      break;
  }
}

}  // namespace sonde::cuda
