#include "trace_file.h"

#include <sonde/toolkit/text.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "advice.h"
#include "memory.h"

namespace sonde::memory {
namespace {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

constexpr double kLongestSlice = 10;  // us that an operation of the host's time line is drawn for

std::string number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.3f", value);
  return buffer;
}

// Processes of the trace: streams, then objects, of each source.
uint64_t streams_of(uint32_t source) { return uint64_t{source} * 2 + 1; }
uint64_t objects_of(uint32_t source) { return uint64_t{source} * 2 + 2; }

const char *word(OperationKind kind) {
  switch (kind) {
    case OperationKind::kKernel:
      return "kernel";
    case OperationKind::kCopy:
      return "copy";
    case OperationKind::kSet:
      return "set";
    case OperationKind::kPrefetch:
      return "prefetch";
    case OperationKind::kAdvise:
      return "advise";
  }
  return "";
}

std::string quoted(const std::string &text) { return "\"" + json_escape(text) + "\""; }

}  // namespace

std::string json_escape(const std::string &text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", static_cast<unsigned>(c));
      out += buffer;
    } else {
      out += c;
    }
  }
  return out;
}

TraceFile::TraceFile(const std::string &path, const Options &options)
    : path_(path),
      time_axis_(options.time_axis),
      limit_(static_cast<uint64_t>(options.perfetto_operations)),
      file_(path, std::ios::trunc) {
  if (!file_) error_ = path + " cannot be written";
  file_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
}

void TraceFile::event(const std::string &json) {
  if (!error_.empty()) return;
  if (!is_first_) file_ << ",\n";
  is_first_ = false;
  file_ << json;
  if (!file_) error_ = "writing " + path_ + " failed";
}

double TraceFile::place(int64_t time_ns, uint64_t operation) {
  if (!time_axis_) return static_cast<double>(operation);
  if (!has_origin_) {
    has_origin_ = true;
    origin_ns_ = time_ns;
  }
  return static_cast<double>(time_ns - origin_ns_) * 1e-3;
}

void TraceFile::write_waiting(const Waiting &waiting, double next) {
  const double length = time_axis_ ? std::clamp(next - waiting.at, 0.0, kLongestSlice) : 1;
  event(waiting.event + ",\"dur\":" + number(length) + "}");
}

void TraceFile::operation(const MemoryOperation &operation, const Names &names) {
  if (operations_ >= limit_) {
    ++not_written_;
    return;
  }
  ++operations_;
  const double at = place(operation.time_ns, operation.index);
  const std::string name = operation.kind == OperationKind::kKernel ? names(operation.name) : word(operation.kind);
  std::string json =
      "{\"ph\":\"X\",\"pid\":" + std::to_string(streams_of(operation.source)) +
      ",\"tid\":" + std::to_string(operation.stream) + ",\"ts\":" + number(at) + ",\"name\":" + quoted(name) +
      ",\"cat\":\"" + word(operation.kind) + "\",\"args\":{\"operation\":" + std::to_string(operation.index) +
      ",\"kernels_before\":" + std::to_string(operation.kernels) + ",\"bytes\":" + std::to_string(operation.bytes) +
      ",\"watched\":" + (operation.is_complete() ? "true" : "false") + "}";
  const auto [found, is_new] = waiting_.try_emplace({operation.source, operation.stream});
  if (is_new) {
    event("{\"ph\":\"M\",\"pid\":" + std::to_string(streams_of(operation.source)) +
          ",\"tid\":" + std::to_string(operation.stream) + ",\"name\":\"thread_name\",\"args\":{\"name\":\"stream " +
          std::to_string(operation.stream) + "\"}}");
  } else {
    write_waiting(found->second, at);
  }
  found->second = {at, std::move(json)};
}

void TraceFile::objects(const Memory &memory) {
  std::set<uint32_t> sources;
  uint64_t track = 0;
  for (const auto &[key, group] : memory.objects().groups()) {
    const std::string process = std::to_string(objects_of(group->source));
    if (sources.insert(group->source).second) {
      const auto id = memory.process_ids().find(group->source);
      const std::string of =
          id == memory.process_ids().end() ? std::string() : " of process " + std::to_string(id->second);
      event("{\"ph\":\"M\",\"pid\":" + process +
            ",\"name\":\"process_name\",\"args\":{\"name\":" + quoted("Objects" + of) + "}}");
      event("{\"ph\":\"M\",\"pid\":" + std::to_string(streams_of(group->source)) +
            ",\"name\":\"process_name\",\"args\":{\"name\":" + quoted("Operations" + of) + "}}");
    }
    const std::string level = std::string(level_name(group->level)) + "s on device " + std::to_string(group->device);
    for (const toolkit::Timeline::Point &point : group->level_curve.points()) {
      event("{\"ph\":\"C\",\"pid\":" + process +
            ",\"ts\":" + number(place(point.begin, static_cast<uint64_t>(std::max<int64_t>(point.begin, 0)))) +
            ",\"name\":" + quoted("bytes of " + level) + ",\"args\":{\"most\":" + std::to_string(point.peak) + "}}");
    }
    for (const Usage *const usage : group->worst.sorted()) {
      const MemoryObject &object = usage->object;
      const std::string where = ",\"pid\":" + process + ",\"tid\":" + std::to_string(++track);
      const std::string title = memory.name_of_object(object) + " (" + toolkit::format_bytes(object.bytes) + ")";
      event("{\"ph\":\"M\"" + where + ",\"name\":\"thread_name\",\"args\":{\"name\":" +
            quoted(std::string(level_name(group->level)) + " " + std::to_string(object.id) + ": " + title) + "}}");
      event("{\"ph\":\"M\"" + where +
            ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":" + std::to_string(track) + "}}");
      const double begin = place(object.begin_ns, object.begin_operation);
      const double end = std::max(begin, place(object.end_ns, object.end_operation));
      const auto slice = [&](const std::string &name, double from, double to, const std::string &arguments) {
        event("{\"ph\":\"X\"" + where + ",\"ts\":" + number(from) + ",\"dur\":" + number(std::max(to - from, 0.0)) +
              ",\"name\":" + quoted(name) + ",\"args\":{" + arguments + "}}");
      };
      const auto moment = [&](const std::string &name, double at) {
        event("{\"ph\":\"i\",\"s\":\"t\"" + where + ",\"ts\":" + number(at) + ",\"name\":" + quoted(name) + "}");
      };
      std::string arguments = "\"id\":" + std::to_string(object.id) + ",\"bytes\":" + std::to_string(object.bytes) +
                              ",\"patterns\":" + quoted(pattern_list(usage->patterns)) +
                              ",\"wasted_byte_seconds\":" + number(usage->wasted() * 1e-9);
      for (size_t i = 0; i < kPatterns; ++i) {
        if (!usage->patterns.has(pattern_at(i))) continue;
        arguments += "," + quoted("suggestion: " + std::string(kPatternNames[i])) + ":" +
                     quoted(suggestion(memory, *usage, pattern_at(i)));
      }
      moment(object.is_implicit || object.is_before_capture ? "begin not seen" : "ALLOC", begin);
      slice(title, begin, end, arguments);
      if (usage->uses != 0) {
        const double first = std::max(begin, place(usage->first.time_ns, usage->first.operation));
        const uint64_t step = time_axis_ ? 0 : 1;  // an operation is one step long along operations
        const double last =
            std::clamp(place(usage->last.time_ns, usage->last.operation + step), first, std::max(first, end));
        if (usage->patterns.has(Pattern::kEarlyAllocation)) {
          slice("EARLY", begin, first, "\"kernels\":" + std::to_string(usage->early_gap));
        }
        slice("in use", first, last, "\"uses\":" + std::to_string(usage->uses));
        std::vector<IdleSlice> idle = usage->idle;
        std::sort(idle.begin(), idle.end(),
                  [](const IdleSlice &a, const IdleSlice &b) { return a.from.sequence < b.from.sequence; });
        for (const IdleSlice &rest : idle) {
          slice("IDLE", std::max(first, place(rest.from.time_ns, rest.from.operation + step)),
                std::min(last, place(rest.to.time_ns, rest.to.operation)), "\"kernels\":" + std::to_string(rest.gap));
        }
        if (usage->patterns.has(Pattern::kLateDeallocation) || usage->patterns.has(Pattern::kLeak)) {
          slice(object.end == ObjectEnd::kAlive ? "LEAK" : "LATE", last, end,
                "\"kernels\":" + std::to_string(usage->late_gap));
        }
      }
      if (object.end == ObjectEnd::kFreed) moment("FREE", end);
    }
  }
}

void TraceFile::finish(const Memory &memory) {
  for (const auto &[key, waiting] : waiting_) write_waiting(waiting, waiting.at + kLongestSlice);
  waiting_.clear();
  objects(memory);
  file_ << "\n]}\n";
  file_.close();
  if (!file_ && error_.empty()) error_ = "writing " + path_ + " failed";
}

}  // namespace sonde::memory
