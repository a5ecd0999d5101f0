// Operators: a callback at the begin and end of each, in every thread.
//
// PyTorch keeps global callbacks apart from the thread-local ones that torch.profiler adds, so both see everything.
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cctype>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "native.h"

namespace sonde_torch {
namespace {

constexpr uint64_t kMostInputs = 1024;  // described of one operator
constexpr uint64_t kMostDimensions = 4096;
constexpr uint32_t kPlainBytes = offsetof(sonde_framework_operator_t, input_types);
static_assert(kPlainBytes % 8 == 0);

// From begin to end. Its memory is recycled by the thread that ends the operator.
struct Context : at::ObserverContext {
  uint64_t scope = 0;
  uint64_t outer = 0;  // scope of the thread before it
  ThreadState *owner = nullptr;
  bool is_scope = false;
  uint64_t generations[kSinks] = {};  // of the sinks that took the begin, 0: none

  static void *operator new(size_t bytes) {
    ThreadState *const state = this_thread();
    if (state == nullptr || state->free_contexts == nullptr) return ::operator new(bytes);
    void *const memory = state->free_contexts;
    std::memcpy(&state->free_contexts, memory, sizeof(void *));
    return memory;
  }
  static void operator delete(void *memory) {
    ThreadState *const state = this_thread();
    if (state == nullptr) return ::operator delete(memory);
    std::memcpy(memory, &state->free_contexts, sizeof(void *));
    state->free_contexts = memory;
  }
};

// PyTorch numbers threads itself; a backward operator names that number. By number, modulo the size: the number in the
// high half, the system's id in the low one.
std::atomic<uint64_t> system_threads[4096];

void remember_thread(const ThreadState &state) {
  const uint64_t number = at::RecordFunction::currentThreadId();
  std::atomic<uint64_t> &place = system_threads[number % 4096];
  const uint64_t entry = number << 32 | (state.thread & UINT32_MAX);
  if (place.load(std::memory_order_relaxed) != entry) place.store(entry, std::memory_order_relaxed);
}

uint64_t system_thread(uint64_t number) {
  const uint64_t entry = system_threads[number % 4096].load(std::memory_order_relaxed);
  return number != 0 && entry >> 32 == number ? entry & UINT32_MAX : 0;
}

const char *type_text(at::ScalarType type, std::string &other) {
  switch (type) {
    case at::ScalarType::Byte:
      return "uint8";
    case at::ScalarType::Char:
      return "int8";
    case at::ScalarType::Short:
      return "int16";
    case at::ScalarType::Int:
      return "int32";
    case at::ScalarType::Long:
      return "int64";
    case at::ScalarType::Half:
      return "float16";
    case at::ScalarType::Float:
      return "float32";
    case at::ScalarType::Double:
      return "float64";
    case at::ScalarType::BFloat16:
      return "bfloat16";
    case at::ScalarType::Bool:
      return "bool";
    case at::ScalarType::ComplexHalf:
      return "complex32";
    case at::ScalarType::ComplexFloat:
      return "complex64";
    case at::ScalarType::ComplexDouble:
      return "complex128";
    default:
      other = c10::toString(type);
      for (char &letter : other) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      return other.c_str();
  }
}

// Types and shapes of an operator's inputs, in the form of the record.
struct Inputs {
  std::vector<sonde_string_t> types;
  std::vector<uint64_t> arguments;
  std::vector<int64_t> ranks;
  std::vector<int64_t> shapes;

  void clear() {
    types.clear();
    arguments.clear();
    ranks.clear();
    shapes.clear();
  }

  void add(uint64_t argument, sonde_string_t type, int64_t rank) {
    arguments.push_back(argument);
    types.push_back(type);
    ranks.push_back(rank);
  }

  void add_tensor(ThreadState &state, uint64_t argument, const at::Tensor &tensor) {
    if (!tensor.defined()) return add(argument, 0, -1);
    std::string other;
    const sonde_string_t type = intern_cached(state, type_text(tensor.scalar_type(), other));
    // A nested tensor has no one shape, a symbolic one no numbers.
    if (tensor.is_nested() || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
      return add(argument, type, -1);
    const auto sizes = tensor.sizes();
    if (shapes.size() + sizes.size() > kMostDimensions) return add(argument, type, -1);
    add(argument, type, static_cast<int64_t>(sizes.size()));
    shapes.insert(shapes.end(), sizes.begin(), sizes.end());
  }

  void add_value(ThreadState &state, uint64_t argument, const c10::IValue &value) {
    if (value.isTensor()) return add_tensor(state, argument, value.toTensor());
    if (value.isNone()) return add(argument, 0, -1);
    const char *type = "object";
    if (value.isInt()) type = "int";
    if (value.isDouble()) type = "float";
    if (value.isBool()) type = "bool";
    if (value.isString()) type = "str";
    if (value.isDevice()) type = "device";
    if (value.isIntList()) type = "int[]";
    if (value.isDoubleList()) type = "float[]";
    if (value.isBoolList()) type = "bool[]";
    if (value.isTensorList()) {
      add(argument, intern_cached(state, "tensor[]"), -1);
      for (const at::Tensor &tensor : value.toTensorVector()) {
        if (types.size() >= kMostInputs) return;
        add_tensor(state, argument, tensor);
      }
      return;
    }
    if (value.isList() && std::strcmp(type, "object") == 0) {
      // Lists of tensors that may be absent, as indexing takes them.
      add(argument, intern_cached(state, "list"), -1);
      for (const c10::IValue &element : value.toListRef()) {
        if (types.size() >= kMostInputs) return;
        add_value(state, argument, element);
      }
      return;
    }
    add(argument, intern_cached(state, type), -1);
  }

  void read(ThreadState &state, const at::RecordFunction &function) {
    clear();
    uint64_t argument = 0;
    for (const c10::IValue &value : function.inputs()) {
      if (types.size() >= kMostInputs) return;
      add_value(state, argument++, value);
    }
  }
};

constexpr uint32_t aligned(size_t bytes) { return static_cast<uint32_t>((bytes + 7) / 8 * 8); }

template <typename Element>
sonde_span_t place(uint8_t *record, uint32_t &offset, const std::vector<Element> &values) {
  if (values.empty()) return {0, 0};
  const sonde_span_t span = {offset, static_cast<uint32_t>(values.size())};
  const size_t bytes = values.size() * sizeof(Element);
  std::memset(record + offset + aligned(bytes) - 8, 0, 8);
  std::memcpy(record + offset, values.data(), bytes);
  offset += aligned(bytes);
  return span;
}

// False: there was no room.
bool write_with_inputs(sonde_writer_t &writer, const sonde_framework_operator_t &plain, const Inputs &inputs) {
  const uint32_t fixed = sizeof(sonde_framework_operator_t);
  const uint32_t bytes = aligned(fixed + aligned(inputs.types.size() * 4) +
                                 8 * (inputs.arguments.size() + inputs.ranks.size() + inputs.shapes.size()));
  auto *const room = static_cast<uint8_t *>(sonde_reserve(capture, &writer, bytes));
  if (room == nullptr) return false;
  sonde_framework_operator_t record = plain;
  uint32_t offset = fixed;
  record.input_types = place(room, offset, inputs.types);
  record.input_arguments = place(room, offset, inputs.arguments);
  record.input_ranks = place(room, offset, inputs.ranks);
  record.input_shapes = place(room, offset, inputs.shapes);
  record.header.fixed8 = fixed / 8;
  record.header.size8 = static_cast<uint16_t>(bytes / 8);
  std::memcpy(room, &record, fixed);
  sonde_commit(&writer, bytes);
  return true;
}

// The inputs of the operator, read into memory that the thread keeps. Empty for a tensor of a kind that answers nothing.
const Inputs &read_inputs(ThreadState &state, const at::RecordFunction &function) {
  thread_local Inputs inputs;
  try {
    inputs.read(state, function);
  } catch (...) {
    inputs.clear();
  }
  return inputs;
}

void begin_scope(ThreadState &state, Context &context, const char *name, uint64_t stamp) {
  static const sonde_string_t domain = intern("torch.record_function");
  context.is_scope = true;
  for_each_sink(state, SONDE_FRAMEWORK_SCOPE_PUSH, kOperators,
                [&](sonde_writer_t &writer, uint32_t sink, uint64_t generation) {
                  sonde_framework_scope_t record{};
                  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, stamp);
                  record.scope = context.scope;
                  record.thread = state.thread;
                  record.name = intern_cached(state, name);
                  record.domain = domain;
                  if (sonde_write(capture, &writer, &record, sizeof(record)) != 0)
                    context.generations[sink] = generation;
                });
}

void begin_operator(ThreadState &state, Context &context, const at::RecordFunction &function, uint64_t stamp) {
  static const sonde_string_t domain = intern("torch");
  static const sonde_string_t script = intern("torchscript");
  sonde_framework_operator_t plain{};
  SONDE_RECORD_INIT(&plain, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_OPERATOR_BEGIN, stamp);
  plain.header.size8 = plain.header.fixed8 = kPlainBytes / 8;
  plain.scope = context.scope;
  plain.thread = state.thread;
  plain.name = intern_cached(state, function.name());
  plain.domain = domain;
  if (function.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION) plain.category = script;
  if (function.seqNr() >= 0) {
    const bool backward = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
    plain.link = backward ? SONDE_LINK_BACKWARD : SONDE_LINK_FORWARD;
    plain.sequence = static_cast<uint64_t>(function.seqNr());
    if (backward) plain.forward_thread = system_thread(function.forwardThreadId());
  }
  const Inputs *inputs = nullptr;
  for_each_sink(state, SONDE_FRAMEWORK_OPERATOR_BEGIN, kOperators,
                [&](sonde_writer_t &writer, uint32_t sink, uint64_t generation) {
                  const uint32_t options = sinks[sink].options.load(std::memory_order_relaxed);
                  const bool outermost = context.outer == 0;
                  plain.call_path = (options & kStacks) != 0 && outermost ? python_call_path(state, sink, writer) : 0;
                  bool taken = false;
                  if ((options & kShapes) != 0) {
                    if (inputs == nullptr) inputs = &read_inputs(state, function);
                    taken = write_with_inputs(writer, plain, *inputs);
                  } else {
                    taken = sonde_write(capture, &writer, &plain, kPlainBytes) != 0;
                  }
                  if (taken) context.generations[sink] = generation;
                });
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &function) {
  if ((active.load(std::memory_order_relaxed) & kOperators) == 0) return nullptr;
  ThreadState *const state = this_thread();
  if (state == nullptr) return nullptr;
  try {
    const uint64_t stamp = sonde_stamp();
    auto context = std::make_unique<Context>();
    context->owner = state;
    context->outer = state->scope;
    context->scope = ++state->next_identity;
    if (context->outer == 0) remember_thread(*state);
    if (function.scope() == at::RecordScope::USER_SCOPE) {
      begin_scope(*state, *context, function.name(), stamp);
    } else {
      begin_operator(*state, *context, function, stamp);
    }
    state->scope = context->scope;
    return context;
  } catch (...) {
    return nullptr;
  }
}

void end(const at::RecordFunction &, at::ObserverContext *opaque) {
  if (opaque == nullptr) return;
  const uint64_t stamp = sonde_stamp();
  const auto &context = *static_cast<const Context *>(opaque);
  ThreadState *const state = this_thread();
  if (state == nullptr) return;
  // An operator that ends on another thread leaves this one's nesting alone.
  if (context.owner == state && state->scope == context.scope) state->scope = context.outer;
  static const sonde_string_t domains[] = {intern("torch"), intern("torch.record_function")};
  const uint32_t type = context.is_scope ? SONDE_FRAMEWORK_SCOPE_POP : SONDE_FRAMEWORK_OPERATOR_END;
  for_each_sink(*state, type, kOperators, [&](sonde_writer_t &writer, uint32_t sink, uint64_t generation) {
    if (context.generations[sink] != generation) return;
    sonde_framework_scope_end_t record{};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, type, stamp);
    record.scope = context.scope;
    record.thread = state->thread;
    record.domain = domains[context.is_scope ? 1 : 0];
    sonde_write(capture, &writer, &record, sizeof(record));
  });
}

at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
bool handle_has_inputs = false;

}  // namespace

void watch_operators(uint32_t options) noexcept {
  const bool wanted = (options & kOperators) != 0;
  const bool inputs = (options & kShapes) != 0;
  if (handle != at::INVALID_CALLBACK_HANDLE && (!wanted || inputs != handle_has_inputs)) {
    at::removeCallback(handle);
    handle = at::INVALID_CALLBACK_HANDLE;
  }
  if (!wanted || handle != at::INVALID_CALLBACK_HANDLE) return;
  handle_has_inputs = inputs;
  handle = at::addGlobalCallback(
      at::RecordFunctionCallback(begin, end)
          .needsInputs(inputs)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::TORCHSCRIPT_FUNCTION,
                   at::RecordScope::CUSTOM_CLASS, at::RecordScope::USER_SCOPE}));
}

}  // namespace sonde_torch
