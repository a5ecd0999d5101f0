#include "nvtx.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sonde/spaces/framework.h>
#include <sonde/spaces/object.h>

#include "collector.h"
#include "common/services.h"
#include "sinks.h"

namespace sonde::cuda::nvtx {

namespace {

// A domain of the program; the handle that NVTX hands back to it. Domains live as long as the process, because a
// thread may use a handle that another one has just given up.
struct Domain {
  sonde_string_t label = 0;
  mutable std::shared_mutex mutex;
  std::unordered_map<uint32_t, sonde_string_t> categories;

  sonde_string_t category(uint32_t id) const {
    if (id == 0) return 0;
    std::shared_lock<std::shared_mutex> hold(mutex);
    const auto found = categories.find(id);
    return found != categories.end() ? found->second : 0;
  }
};

// A string that the program registered.
struct RegisteredString {
  sonde_string_t id = 0;
};

sonde_string_t intern(const char *text) {
  sonde_string_t id = 0;
  if (text != nullptr) services().capture->intern(text, UINT64_MAX, &id);
  return id;
}

sonde_string_t intern(const wchar_t *text) { return text != nullptr ? intern(utf8(text).c_str()) : 0; }

// Domains by label and registered strings by id. Never destroyed: ranges may end while the process does.
class Registry {
 public:
  static Registry &instance() {
    static Registry *const registry = new Registry;
    return *registry;
  }

  Domain *default_domain() { return default_; }

  Domain *domain(const std::string &name) {
    const sonde_string_t label = intern(("nvtx:" + name).c_str());
    std::lock_guard<std::mutex> hold(mutex_);
    Domain *&domain = domains_[label];
    if (domain == nullptr) domain = new Domain;
    domain->label = label;
    return domain;
  }

  RegisteredString *string(sonde_string_t id) {
    std::lock_guard<std::mutex> hold(mutex_);
    RegisteredString *&string = strings_[id];
    if (string == nullptr) string = new RegisteredString{id};
    return string;
  }

 private:
  Registry() : default_(new Domain) { default_->label = intern("nvtx"); }

  std::mutex mutex_;
  std::unordered_map<sonde_string_t, Domain *> domains_;
  std::unordered_map<sonde_string_t, RegisteredString *> strings_;
  Domain *default_;
};

const Domain &domain_of(const void *handle) {
  return handle != nullptr ? *static_cast<const Domain *>(handle) : *Registry::instance().default_domain();
}

// How deep this thread's ranges are nested, by domain. A thread uses few domains, so a list is searched fastest.
int &depth_of(const Domain &domain) {
  thread_local std::vector<std::pair<const Domain *, int>> depths;
  for (auto &[known, depth] : depths) {
    if (known == &domain) return depth;
  }
  return depths.emplace_back(&domain, 0).second;
}

// This thread's writer for the session in `slot`.
sonde_writer_t *writer_of(const Sink &sink, uint32_t slot) {
  struct Cached {
    uint64_t serial = 0;
    sonde_writer_t *writer = nullptr;
  };
  thread_local Cached cache[Sinks::kMost];
  Cached &cached = cache[slot];
  if (cached.serial != sink.serial) {
    cached.writer = nullptr;
    if (services().capture->writer(sink.session, &cached.writer) != SONDE_OK) cached.writer = nullptr;
    cached.serial = sink.serial;
  }
  return cached.writer;
}

// Writes `record` to each session that takes NVTX events and wants its type.
template <typename Record>
void emit(uint32_t space, const Record &record) {
  const uint32_t type = record.header.type;
  sinks().each([&](const Sink &sink, uint32_t slot) {
    const uint64_t *demand = space == SONDE_SPACE_FRAMEWORK ? sink.framework : sink.object;
    if (!sink.nvtx || demand == nullptr || !sonde_wants(demand, type)) return;
    if (sonde_writer_t *writer = writer_of(sink, slot)) {
      sonde_write(services().capture, writer, &record, sizeof(record));
    }
  });
}

// True when an event goes nowhere: no session, or the thread does a tool's work.
bool idle() { return sinks().empty() || services().capture->inside() != 0; }

// ---- events --------------------------------------------------------------------------------------------------------

void emit_scope(uint32_t type, uint64_t scope, const Domain &domain, sonde_string_t name,
                const EventAttributes *attributes) {
  sonde_framework_scope_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, type, sonde_stamp());
  record.scope = scope;
  record.thread = thread_id();
  record.name = name;
  record.domain = domain.label;
  if (attributes != nullptr) {
    record.category = domain.category(attributes->category);
    if (attributes->color_type == kColorArgb) record.color = attributes->color;
    switch (attributes->payload_type) {
      case kPayloadUint64:
        record.payload = attributes->payload.u64;
        record.payload_kind = 1;
        break;
      case kPayloadUint32:
        record.payload = attributes->payload.u32;
        record.payload_kind = 1;
        break;
      case kPayloadInt64:
        record.payload = static_cast<uint64_t>(attributes->payload.i64);
        record.payload_kind = 2;
        break;
      case kPayloadInt32:
        record.payload = static_cast<uint64_t>(static_cast<int64_t>(attributes->payload.i32));
        record.payload_kind = 2;
        break;
      case kPayloadDouble:
      case kPayloadFloat: {
        const bool single = attributes->payload_type == kPayloadFloat;
        const double value = single ? static_cast<double>(attributes->payload.f32) : attributes->payload.f64;
        std::memcpy(&record.payload, &value, sizeof(value));
        record.payload_kind = 3;
        break;
      }
      default:
        break;
    }
  }
  emit(SONDE_SPACE_FRAMEWORK, record);
}

void emit_end(uint32_t type, uint64_t scope, sonde_string_t domain) {
  sonde_framework_scope_end_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, type, sonde_stamp());
  record.scope = scope;
  record.thread = thread_id();
  record.domain = domain;
  emit(SONDE_SPACE_FRAMEWORK, record);
}

sonde_string_t message_of(int32_t type, const Message &message) {
  switch (type) {
    case kMessageAscii:
      return intern(message.ascii);
    case kMessageWide:
      return intern(message.wide);
    case kMessageRegistered:
      return message.registered != nullptr ? static_cast<const RegisteredString *>(message.registered)->id : 0;
    default:
      return 0;
  }
}

// The program's attributes with the members that its NVTX has; the rest is zero.
EventAttributes read_attributes(const EventAttributes *given) {
  EventAttributes attributes = {};
  if (given != nullptr) std::memcpy(&attributes, given, std::min<size_t>(given->size, sizeof(attributes)));
  return attributes;
}

void scope_event(uint32_t type, uint64_t scope, const void *domain, const EventAttributes *given) {
  if (idle()) return;
  const EventAttributes attributes = read_attributes(given);
  emit_scope(type, scope, domain_of(domain), message_of(attributes.message_type, attributes.message), &attributes);
}

template <typename Char>
void scope_event(uint32_t type, uint64_t scope, const Char *message) {
  if (idle()) return;
  emit_scope(type, scope, domain_of(nullptr), intern(message), nullptr);
}

// Ids of ranges that may end on another thread. 0 is none.
uint64_t next_range() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Depths as NVTX counts them: that of the outermost range is 0; popping more than was pushed gives a negative value.
int pushed(const void *domain) { return depth_of(domain_of(domain))++; }

int popped(const void *handle) {
  const Domain &domain = domain_of(handle);
  if (!idle()) emit_end(SONDE_FRAMEWORK_SCOPE_POP, 0, domain.label);
  int &depth = depth_of(domain);
  return depth > 0 ? --depth : -1;
}

void domain_mark(const void *domain, const EventAttributes *attributes) {
  scope_event(SONDE_FRAMEWORK_MARK, 0, domain, attributes);
}
uint64_t domain_range_start(const void *domain, const EventAttributes *attributes) {
  const uint64_t id = next_range();
  scope_event(SONDE_FRAMEWORK_RANGE_START, id, domain, attributes);
  return id;
}
void domain_range_end(const void *domain, uint64_t id) {
  if (!idle()) emit_end(SONDE_FRAMEWORK_RANGE_END, id, domain_of(domain).label);
}
int domain_range_push(const void *domain, const EventAttributes *attributes) {
  scope_event(SONDE_FRAMEWORK_SCOPE_PUSH, 0, domain, attributes);
  return pushed(domain);
}
int domain_range_pop(const void *domain) { return popped(domain); }

void mark_ex(const EventAttributes *attributes) { domain_mark(nullptr, attributes); }
uint64_t range_start_ex(const EventAttributes *attributes) { return domain_range_start(nullptr, attributes); }
void range_end(uint64_t id) { domain_range_end(nullptr, id); }
int range_push_ex(const EventAttributes *attributes) { return domain_range_push(nullptr, attributes); }
int range_pop() { return popped(nullptr); }

template <typename Char>
void mark(const Char *message) {
  scope_event(SONDE_FRAMEWORK_MARK, 0, message);
}
template <typename Char>
uint64_t range_start(const Char *message) {
  const uint64_t id = next_range();
  scope_event(SONDE_FRAMEWORK_RANGE_START, id, message);
  return id;
}
template <typename Char>
int range_push(const Char *message) {
  scope_event(SONDE_FRAMEWORK_SCOPE_PUSH, 0, message);
  return pushed(nullptr);
}

// ---- names ---------------------------------------------------------------------------------------------------------

void emit_name(uint32_t kind, uint64_t object, sonde_string_t name) {
  if (idle()) return;
  sonde_object_name_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_OBJECT, SONDE_OBJECT_NAME, sonde_stamp());
  record.object = object;
  record.kind = kind;
  record.name = name;
  emit(SONDE_SPACE_OBJECT, record);
}

template <typename Char>
void domain_name_category(void *handle, uint32_t category, const Char *name) {
  auto *domain = handle != nullptr ? static_cast<Domain *>(handle) : Registry::instance().default_domain();
  const sonde_string_t id = intern(name);
  std::lock_guard<std::shared_mutex> hold(domain->mutex);
  domain->categories[category] = id;
}
template <typename Char>
void name_category(uint32_t category, const Char *name) {
  domain_name_category(nullptr, category, name);
}
template <typename Char>
void name_thread(uint32_t thread, const Char *name) {
  emit_name(SONDE_NAMED_THREAD, thread, intern(name));
}
template <typename Char>
void name_device(int device, const Char *name) {
  emit_name(SONDE_NAMED_DEVICE, static_cast<uint64_t>(device), intern(name));
}
template <typename Char>
void name_event(void *event, const Char *name) {
  emit_name(SONDE_NAMED_EVENT, reinterpret_cast<uintptr_t>(event), intern(name));
}
// Contexts and streams are known to records by CUPTI's numbers; without CUPTI the handle is all there is.
template <typename Char>
void name_context(void *context, const Char *name) {
  const CuptiApi *api = Collector::instance().api();
  uint32_t id = 0;
  const bool found =
      api != nullptr && api->get_context_id != nullptr && api->get_context_id(context, &id) == kCuptiSuccess;
  emit_name(SONDE_NAMED_CONTEXT, found ? id : reinterpret_cast<uintptr_t>(context), intern(name));
}
template <typename Char>
void name_stream(void *stream, const Char *name) {
  const CuptiApi *api = Collector::instance().api();
  uint32_t id = 0;
  const bool found =
      api != nullptr && api->get_stream_id != nullptr && api->get_stream_id(nullptr, stream, 0, &id) == kCuptiSuccess;
  emit_name(SONDE_NAMED_STREAM, found ? id : reinterpret_cast<uintptr_t>(stream), intern(name));
}

void *domain_create_a(const char *name) { return Registry::instance().domain(name != nullptr ? name : ""); }
void *domain_create_w(const wchar_t *name) { return Registry::instance().domain(name != nullptr ? utf8(name) : ""); }
void domain_destroy(void *) {}

template <typename Char>
void *domain_register_string(void *, const Char *text) {
  return Registry::instance().string(intern(text));
}

void *domain_resource_create(void *, ResourceAttributes *given) {
  ResourceAttributes attributes = {};
  if (given != nullptr) std::memcpy(&attributes, given, std::min<size_t>(given->size, sizeof(attributes)));
  const sonde_string_t name = message_of(attributes.message_type, attributes.message);
  switch (attributes.identifier_type) {
    case kResourcePointer:
    case kResourceHandle:
      emit_name(SONDE_NAMED_ADDRESS, attributes.identifier.value, name);
      break;
    case kResourceThreadNative:
      emit_name(SONDE_NAMED_THREAD, attributes.identifier.value, name);
      break;
    default:
      break;
  }
  return Registry::instance().string(name);
}
void domain_resource_destroy(void *) {}

void initialize(const void *) {}

// ---- tables --------------------------------------------------------------------------------------------------------

struct Attachment {
  uint32_t function;
  Function target;
};

template <typename Target>
Attachment attach(uint32_t function, Target *target) {
  return {function, reinterpret_cast<Function>(target)};
}

const std::vector<Attachment> &core_functions() {
  static const std::vector<Attachment> functions = {
      attach(core::kMarkEx, mark_ex),
      attach(core::kMarkA, mark<char>),
      attach(core::kMarkW, mark<wchar_t>),
      attach(core::kRangeStartEx, range_start_ex),
      attach(core::kRangeStartA, range_start<char>),
      attach(core::kRangeStartW, range_start<wchar_t>),
      attach(core::kRangeEnd, range_end),
      attach(core::kRangePushEx, range_push_ex),
      attach(core::kRangePushA, range_push<char>),
      attach(core::kRangePushW, range_push<wchar_t>),
      attach(core::kRangePop, range_pop),
      attach(core::kNameCategoryA, name_category<char>),
      attach(core::kNameCategoryW, name_category<wchar_t>),
      attach(core::kNameThreadA, name_thread<char>),
      attach(core::kNameThreadW, name_thread<wchar_t>),
  };
  return functions;
}

const std::vector<Attachment> &core2_functions() {
  static const std::vector<Attachment> functions = {
      attach(core2::kDomainMarkEx, domain_mark),
      attach(core2::kDomainRangeStartEx, domain_range_start),
      attach(core2::kDomainRangeEnd, domain_range_end),
      attach(core2::kDomainRangePushEx, domain_range_push),
      attach(core2::kDomainRangePop, domain_range_pop),
      attach(core2::kDomainResourceCreate, domain_resource_create),
      attach(core2::kDomainResourceDestroy, domain_resource_destroy),
      attach(core2::kDomainNameCategoryA, domain_name_category<char>),
      attach(core2::kDomainNameCategoryW, domain_name_category<wchar_t>),
      attach(core2::kDomainRegisterStringA, domain_register_string<char>),
      attach(core2::kDomainRegisterStringW, domain_register_string<wchar_t>),
      attach(core2::kDomainCreateA, domain_create_a),
      attach(core2::kDomainCreateW, domain_create_w),
      attach(core2::kDomainDestroy, domain_destroy),
      attach(core2::kInitialize, initialize),
  };
  return functions;
}

const std::vector<Attachment> &cuda_functions() {
  static const std::vector<Attachment> functions = {
      attach(cuda::kNameDeviceA, name_device<char>),   attach(cuda::kNameDeviceW, name_device<wchar_t>),
      attach(cuda::kNameContextA, name_context<char>), attach(cuda::kNameContextW, name_context<wchar_t>),
      attach(cuda::kNameStreamA, name_stream<char>),   attach(cuda::kNameStreamW, name_stream<wchar_t>),
      attach(cuda::kNameEventA, name_event<char>),     attach(cuda::kNameEventW, name_event<wchar_t>),
  };
  return functions;
}

const std::vector<Attachment> &cuda_runtime_functions() {
  static const std::vector<Attachment> functions = {
      attach(cuda_runtime::kNameDeviceA, name_device<char>), attach(cuda_runtime::kNameDeviceW, name_device<wchar_t>),
      attach(cuda_runtime::kNameStreamA, name_stream<char>), attach(cuda_runtime::kNameStreamW, name_stream<wchar_t>),
      attach(cuda_runtime::kNameEventA, name_event<char>),   attach(cuda_runtime::kNameEventW, name_event<wchar_t>),
  };
  return functions;
}

bool attach_module(const ExportTableCallbacks &callbacks, uint32_t module, const std::vector<Attachment> &functions) {
  FunctionTable table = nullptr;
  uint32_t size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) == 0 || table == nullptr) return false;
  for (const Attachment &one : functions) {
    if (one.function < size && table[one.function] != nullptr) *table[one.function] = one.target;
  }
  return true;
}

}  // namespace

std::string utf8(const wchar_t *text) {
  std::string out;
  for (; *text != L'\0'; ++text) {
    auto code = static_cast<uint32_t>(*text);
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = 0xFFFD;
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | code >> 12);
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      out += static_cast<char>(0xF0 | code >> 18);
      out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return out;
}

sonde_status inject(GetExportTable get_export_table) {
  const sonde_host_t *host = services().host;
  if (get_export_table == nullptr) return host->set_error(SONDE_E_INVALID, "NVTX gave no function for its tables");
  const auto *callbacks = static_cast<const ExportTableCallbacks *>(get_export_table(kTableCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(ExportTableCallbacks) ||
      callbacks->get_module_function_table == nullptr) {
    return host->set_error(SONDE_E_INVALID, "NVTX's table of callbacks is missing or too short");
  }
  if (!attach_module(*callbacks, kModuleCore, core_functions())) {
    return host->set_error(SONDE_E_INVALID, "NVTX has no table of its core functions");
  }
  // Present from version 2 on, each where the program includes the header.
  attach_module(*callbacks, kModuleCore2, core2_functions());
  attach_module(*callbacks, kModuleCuda, cuda_functions());
  attach_module(*callbacks, kModuleCudaRuntime, cuda_runtime_functions());
  return SONDE_OK;
}

}  // namespace sonde::cuda::nvtx
