#include "cli/merge_translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "cli/record_reader.h"

namespace sonde::cli {
namespace {

using toolkit::kNoPartner;

// Clock pairs of the second run name their clock with this bit, so that no line of the first run's is bent by them.
constexpr uint32_t kClockOfSecondRun = uint32_t{1} << 31;

template <typename Number>
Number load(const void *from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <typename Number>
void store(void *to, Number number) {
  std::memcpy(to, &number, sizeof number);
}

uint64_t load_width(const uint8_t *from, uint32_t width) {
  uint64_t number = 0;
  std::memcpy(&number, from, width);
  return number;
}

void store_width(uint8_t *to, uint32_t width, uint64_t number) { std::memcpy(to, &number, width); }

// The action of a field, by what its schema says and, for identities, by the name that it has everywhere.
std::optional<FieldAction> action_of(const sonde_field_t &field) {
  const std::string_view name = field.name;
  switch (field.kind) {
    case SONDE_KIND_STRING:
      return FieldAction::kString;
    case SONDE_KIND_SPAN_STRING:
      return FieldAction::kStrings;
    case SONDE_KIND_TIME:
      return FieldAction::kTime;
    case SONDE_KIND_ADDRESS:
      // Code does not lie in allocations.
      if (name == "pc" || name == "function_begin") return std::nullopt;
      return FieldAction::kAddress;
    case SONDE_KIND_ID:
    case SONDE_KIND_UINT:
      if (name == "correlation") return FieldAction::kCorrelation;
      if (name == "stream") return FieldAction::kStream;
      if (name == "context") return FieldAction::kContext;
      if (name == "graph_exec") return FieldAction::kGraphExec;
      if (name == "graph_node") return FieldAction::kGraphNode;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool reaches(const uint8_t *record, uint32_t offset, uint32_t width) {
  return offset + width <= uint32_t{reinterpret_cast<const sonde_record_t *>(record)->fixed8} * 8;
}

// The elements of a span field; empty where it does not lie in the record.
template <typename Element>
std::span<Element> elements(uint8_t *record, sonde_span_t span) {
  const uint64_t end = uint64_t{span.offset} + uint64_t{span.count} * sizeof(Element);
  if (span.count == 0 || span.offset % alignof(Element) != 0 ||
      end > SONDE_RECORD_BYTES(reinterpret_cast<const sonde_record_t *>(record))) {
    return {};
  }
  return {reinterpret_cast<Element *>(record + span.offset), span.count};
}

void change_strings(uint8_t *record, const TypePlan &plan, StringTable &strings, uint32_t source) {
  for (const FieldStep &step : plan.steps) {
    if (!reaches(record, step.offset, step.width)) continue;
    if (step.action == FieldAction::kString && step.width == sizeof(sonde_string_t)) {
      store(record + step.offset, strings.here(source, load<sonde_string_t>(record + step.offset)));
    } else if (step.action == FieldAction::kStrings) {
      for (sonde_string_t &id : elements<sonde_string_t>(record, load<sonde_span_t>(record + step.offset))) {
        id = strings.here(source, id);
      }
    }
  }
}

std::span<const uint8_t> bytes_of(const sonde_record_t &header) {
  return {reinterpret_cast<const uint8_t *>(&header), SONDE_RECORD_BYTES(&header)};
}

// Appends a copy of a record and returns it.
uint8_t *append(std::vector<uint64_t> &words, const sonde_record_t &header) {
  const std::span<const uint8_t> bytes = bytes_of(header);
  const size_t at = words.size();
  words.resize(at + bytes.size() / 8);
  std::memcpy(words.data() + at, bytes.data(), bytes.size());
  return reinterpret_cast<uint8_t *>(words.data() + at);
}

std::vector<toolkit::JoinRange> ranges_of(const std::vector<toolkit::RangeLives::Life> &lives) {
  std::vector<toolkit::JoinRange> ranges;
  ranges.reserve(lives.size());
  for (const toolkit::RangeLives::Life &life : lives) ranges.push_back(life.range);
  return ranges;
}

// Moments that both runs have: where the first one's call is not known, its kernel's begin stands for it.
toolkit::TimeWarp warp_of(const Survey &a, const Survey &b, const toolkit::Join &launches) {
  std::vector<std::pair<int64_t, int64_t>> moments;
  moments.reserve(launches.matched);
  for (uint32_t index = 0; index < launches.a_of_b.size(); ++index) {
    const uint32_t partner = launches.a_of_b[index];
    if (partner == kNoPartner) continue;
    const int64_t call_ns = a.call_ns[partner];
    moments.emplace_back(b.launches.launches()[index].time_ns,
                         call_ns != 0 ? call_ns : a.launches.launches()[partner].time_ns);
  }
  const bool have_begins = a.first_ns != INT64_MAX && b.first_ns != INT64_MAX;
  return {std::move(moments), have_begins ? a.first_ns - b.first_ns : 0};
}

// Kinds of ranges that not every port records; 0: every port does.
uint32_t special_kind(uint32_t group) {
  if ((group & kInnerGroups) != 0) return kInnerGroups;
  if ((group & kStaticGroups) != 0) return kStaticGroups;
  return group == kHostGroup ? kHostGroup : 0;
}

bool has_kind(const Survey &survey, uint32_t kind) {
  return std::any_of(survey.lives.begin(), survey.lives.end(),
                     [kind](const auto &life) { return special_kind(life.range.group) == kind; });
}

// Variables of modules are the same only where their sizes are.
toolkit::Join ranges_joined(const Survey &a, const Survey &b) {
  toolkit::Join join = toolkit::join_ranges(ranges_of(a.lives), ranges_of(b.lives));
  for (uint32_t index = 0; index < join.b_of_a.size(); ++index) {
    const uint32_t partner = join.b_of_a[index];
    if (partner == kNoPartner || special_kind(a.lives[index].range.group) != kStaticGroups) continue;
    if (a.lives[index].range.bytes == b.lives[partner].range.bytes) continue;
    join.b_of_a[index] = join.a_of_b[partner] = kNoPartner;
    --join.matched;
    --join.size_differs;
    ++join.only_a;
    ++join.only_b;
  }
  return join;
}

// Of those that have no partner.
uint64_t count_incomparable(const Survey &survey, const std::vector<uint32_t> &partners, const RunJoin &join) {
  uint64_t sum = 0;
  for (size_t index = 0; index < survey.lives.size(); ++index) {
    const bool is_alone = index >= partners.size() || partners[index] == kNoPartner;
    if (is_alone && !join.is_comparable(survey.lives[index].range.group)) ++sum;
  }
  return sum;
}

}  // namespace

sonde_string_t StringTable::here(uint32_t source, sonde_string_t id) {
  if (id == 0) return 0;
  const auto [place, is_new] = known_.try_emplace(id, 0);
  if (!is_new) return place->second;
  const char *text = nullptr;
  std::string lost;
  if (capture_.text(session_, source, id, &text) != SONDE_OK || text == nullptr) {
    lost = fmt::format("string {} (text lost)", id);
    text = lost.c_str();
  }
  if (capture_.intern(text, UINT64_MAX, &place->second) != SONDE_OK) place->second = 0;
  return place->second;
}

const TypePlan &TypePlans::plan(uint32_t space, uint32_t type) {
  std::unique_ptr<TypePlan> &known = plans_[space % SONDE_SPACE_COUNT][type % SONDE_TYPE_COUNT];
  if (known != nullptr) return *known;
  known = std::make_unique<TypePlan>();
  const sonde_record_type_t *const described = find_record_type(capture_, space, type);
  if (described == nullptr) return *known;
  known->has_schema = true;
  for (uint32_t index = 0; index < described->field_count; ++index) {
    const sonde_field_t &field = field_at(*described, index);
    const std::string_view name = field.name;
    if (name == "bytes" && field.width == 8) known->bytes = field.offset;
    if (name == "launch" && field.width == 8) known->launch = field.offset;
    if (name == "context" && field.width == 4) known->context = field.offset;
    if (const std::optional<FieldAction> action = action_of(field)) {
      known->steps.push_back({field.offset, field.width, *action});
    }
  }
  return *known;
}

std::span<const uint64_t> FirstRun::translate(const Batch &batch) {
  words_.clear();
  for (const Record record : batch) {
    const sonde_record_t &header = *record.header();
    if (header.space == 0) continue;  // padding
    change_strings(append(words_, header), plans_.plan(header.space, header.type), strings_, batch.source());
  }
  return words_;
}

RunJoin::RunJoin(Survey first_run, Survey second_run)
    : a(std::move(first_run)),
      b(std::move(second_run)),
      launches(toolkit::join_launches(a.launches, b.launches)),
      ranges(ranges_joined(a, b)),
      warp(warp_of(a, b, launches)),
      addresses(b.lives, ranges.a_of_b, ranges_of(a.lives)) {
  both_record_host_ = has_kind(a, kHostGroup) && has_kind(b, kHostGroup);
  both_record_inner_ = has_kind(a, kInnerGroups) && has_kind(b, kInnerGroups);
  incomparable_a = count_incomparable(a, ranges.b_of_a, *this);
  incomparable_b = count_incomparable(b, ranges.a_of_b, *this);
  ranges.only_a -= incomparable_a;
  ranges.only_b -= incomparable_b;
}

bool RunJoin::is_comparable(uint32_t group) const {
  const uint32_t kind = special_kind(group);
  if (kind == kStaticGroups) return false;
  return kind == 0 || (kind == kHostGroup ? both_record_host_ : both_record_inner_);
}

SecondRun::SecondRun(const Host &host, sonde_session_t *session, RunJoin &join)
    : join_(join), strings_(host, session), plans_(host) {
  const std::vector<toolkit::JoinLane> &a_lanes = join.a.launches.lanes();
  const std::vector<toolkit::JoinLane> &b_lanes = join.b.launches.lanes();
  for (const toolkit::JoinLane &lane : a_lanes) {
    if (!lane.is_graph) a_streams_.push_back(lane.stream);
  }
  std::sort(a_streams_.begin(), a_streams_.end());
  for (size_t index = 0; index < b_lanes.size(); ++index) {
    const uint32_t partner = join.launches.lane_a_of_b[index];
    if (partner == kNoPartner) continue;
    contexts_.try_emplace(b_lanes[index].context, a_lanes[partner].context);
    if (b_lanes[index].is_graph) {
      graphs_.try_emplace(b_lanes[index].stream, a_lanes[partner].stream);
    } else {
      streams_.try_emplace({b_lanes[index].context, b_lanes[index].stream}, a_lanes[partner].stream);
    }
  }
  // Modules by the hash of their code, else by size, each with the first of the other run that is left.
  std::multimap<std::pair<uint64_t, uint64_t>, uint64_t> of_a;
  for (const SurveyedModule &module : join.a.modules)
    of_a.emplace(std::make_pair(module.hash, module.bytes), module.module);
  for (const SurveyedModule &module : join.b.modules) {
    const auto found = of_a.find({module.hash, module.bytes});
    if (found == of_a.end()) continue;
    modules_.try_emplace(module.module, found->second);
    of_a.erase(found);
  }
}

std::span<const uint64_t> SecondRun::translate(const Batch &batch) {
  words_.clear();
  for (const Record record : batch) {
    const sonde_record_t &header = *record.header();
    if (header.space == 0) continue;  // padding
    if (!is_taken(header, record)) {
      ++counts_.left_out[{header.space, header.type}];
      continue;
    }
    ++counts_.taken;
    change(append(words_, header), batch, record);
  }
  return words_;
}

bool SecondRun::is_taken(const sonde_record_t &header, const Record &record) {
  if (header.space == SONDE_SPACE_SESSION) {
    // What B's own streams need, and what it says of itself. A source has one begin and one end.
    return header.type == SONDE_SESSION_STREAM || header.type == SONDE_SESSION_LOSS ||
           header.type == SONDE_SESSION_NOTE || header.type == SONDE_SESSION_CLOCK_PAIR;
  }
  if (join_.a.count(header.space, header.type) == 0) return true;
  if (header.space != SONDE_SPACE_MEMORY) return false;
  // Ranges that only this run has.
  const int64_t time_ns = record.time_ns();
  const auto is_alone = [&](uint64_t address, uint32_t layer, int64_t begin_ns, bool is_end) {
    const std::vector<toolkit::RangeLives::Life> &lives = join_.b.lives;
    if (is_end) {
      // Lives end in any order; the range that lived the moment before.
      return join_.addresses.translate(address, begin_ns - 1).kind == toolkit::AddressTranslation::Kind::kOnlyInB;
    }
    auto life = std::lower_bound(lives.begin(), lives.end(), begin_ns,
                                 [](const auto &known, int64_t ns) { return known.range.begin_ns < ns; });
    for (; life != lives.end() && life->range.begin_ns == begin_ns; ++life) {
      if (life->range.address != address || life->layer != layer) continue;
      return join_.ranges.a_of_b[static_cast<size_t>(life - lives.begin())] == kNoPartner;
    }
    return false;
  };
  switch (header.type) {
    case SONDE_MEMORY_ALLOCATE:
    case SONDE_MEMORY_SUB_ALLOCATE:
    case SONDE_MEMORY_MAP: {
      sonde_memory_map_t storage;
      const uint64_t address = record.as<sonde_memory_map_t>(storage).address;
      return is_alone(address, header.type == SONDE_MEMORY_SUB_ALLOCATE ? 1 : 0, time_ns, false);
    }
    case SONDE_MEMORY_FREE:
    case SONDE_MEMORY_SUB_FREE:
    case SONDE_MEMORY_UNMAP: {
      sonde_memory_map_t storage;
      const uint64_t address = record.as<sonde_memory_map_t>(storage).address;
      return is_alone(address, header.type == SONDE_MEMORY_SUB_FREE ? 1 : 0, time_ns, true);
    }
    default:
      return false;
  }
}

void SecondRun::change(uint8_t *record, const Batch &batch, const Record &original) {
  auto &header = *reinterpret_cast<sonde_record_t *>(record);
  const sonde_clock_t &clock = *batch.raw().clock;
  const TypePlan &plan = plans_.plan(header.space, header.type);
  if (!plan.has_schema) ++counts_.without_schema;
  change_strings(record, plan, strings_, batch.source());

  // Ranges are those that lived when the launch was made.
  int64_t moment_ns = original.time_ns();
  if (plan.launch != 0 && reaches(record, plan.launch, 8)) {
    if (const std::optional<uint32_t> launch = launch_of(load<uint64_t>(record + plan.launch))) {
      moment_ns = join_.b.launches.launches()[*launch].time_ns;
    }
  }
  if (header.space == SONDE_SPACE_MEMORY &&
      (header.type == SONDE_MEMORY_FREE || header.type == SONDE_MEMORY_SUB_FREE || header.type == SONDE_MEMORY_UNMAP)) {
    --moment_ns;
  }
  header.time = raw_time(clock, header.time);
  const uint32_t context_of_b =
      plan.context != 0 && reaches(record, plan.context, 4) ? load<uint32_t>(record + plan.context) : 0;
  const bool is_launch = header.space == SONDE_SPACE_ACCESS && header.type == SONDE_ACCESS_LAUNCH;
  uint64_t shift = 0;
  for (const FieldStep &step : plan.steps) {
    if (!reaches(record, step.offset, step.width) || header.space == SONDE_SPACE_SESSION) continue;
    uint8_t *const field = record + step.offset;
    const uint64_t value = load_width(field, std::min(step.width, 8u));
    switch (step.action) {
      case FieldAction::kString:
      case FieldAction::kStrings:
        break;
      case FieldAction::kTime:
        store_width(field, step.width, raw_time(clock, value));
        break;
      case FieldAction::kAddress: {
        if (value == 0 || step.width != 8) break;
        const bool is_range = plan.bytes != 0 && reaches(record, plan.bytes, 8);
        const uint64_t bytes = is_range ? load<uint64_t>(record + plan.bytes) : 1;
        const uint64_t translated = address(value, moment_ns, bytes);
        shift = translated - value;
        store_width(field, step.width, translated);
        break;
      }
      case FieldAction::kCorrelation:
        if (!is_launch) store_width(field, step.width, correlation(value));
        break;
      case FieldAction::kStream:
        if (!is_launch && step.width == 8) store_width(field, step.width, stream_handle(context_of_b, value));
        break;
      case FieldAction::kContext:
        if (!is_launch) store_width(field, step.width, context(static_cast<uint32_t>(value)));
        break;
      case FieldAction::kGraphExec:
        if (!is_launch) store_width(field, step.width, graph_exec(value));
        break;
      case FieldAction::kGraphNode:
        break;  // nodes are the runtime's; only a launch has a partner that names one
    }
  }
  if (header.space == SONDE_SPACE_SESSION) change_session(record);
  if (header.space != SONDE_SPACE_ACCESS) return;
  switch (header.type) {
    case SONDE_ACCESS_LAUNCH:
      change_launch(record);
      break;
    case SONDE_ACCESS_PAGES:
      change_pages(record, shift);
      break;
    case SONDE_ACCESS_WARPS:
      change_warps(record, moment_ns);
      break;
    case SONDE_ACCESS_EVENTS:
      change_events(record, moment_ns);
      break;
    default:
      break;
  }
}

void SecondRun::change_session(uint8_t *record) {
  const auto &header = *reinterpret_cast<const sonde_record_t *>(record);
  const auto change_stream = [&](uint32_t offset) {
    if (reaches(record, offset, 8)) store(record + offset, stream(load<uint64_t>(record + offset)));
  };
  switch (header.type) {
    case SONDE_SESSION_STREAM:
      change_stream(offsetof(sonde_session_stream_t, stream));
      break;
    case SONDE_SESSION_LOSS:
      change_stream(offsetof(sonde_session_loss_t, stream));
      break;
    case SONDE_SESSION_CLOCK_PAIR: {
      uint8_t *const clock = record + offsetof(sonde_session_clock_pair_t, clock);
      if (reaches(record, offsetof(sonde_session_clock_pair_t, clock), 4)) {
        store(clock, load<uint32_t>(clock) | kClockOfSecondRun);
      }
      break;
    }
    default:
      break;
  }
}

void SecondRun::change_launch(uint8_t *record) {
  auto &launch = *reinterpret_cast<sonde_access_launch_t *>(record);
  // A record that ends earlier keeps what it has.
  if (!SONDE_RECORD_HAS(record, sonde_access_launch_t, graph_exec)) return;
  const std::optional<uint32_t> index = launch_of(launch.launch);
  const uint32_t partner = index ? join_.launches.a_of_b[*index] : kNoPartner;
  const uint64_t own_stream = launch.stream;
  launch.stream = stream_handle(launch.context, own_stream);
  if (partner != kNoPartner) {
    const toolkit::JoinLaunch &found = join_.a.launches.launches()[partner];
    const toolkit::JoinLane &lane = join_.a.launches.lanes()[found.lane];
    launch.correlation = join_.a.correlations[partner];
    launch.context = lane.context;
    launch.graph_exec = lane.is_graph ? static_cast<uint32_t>(lane.stream) : 0;
    launch.graph_node = found.graph_node;
  } else {
    launch.correlation = 0;
    launch.context = context(launch.context);
    launch.graph_exec = static_cast<uint32_t>(graph_exec(launch.graph_exec));
    launch.graph_node = 0;
  }
  launch.module = module(launch.module);
}

// Pages are aligned by address: those of a range that begins elsewhere within its page go where most of each lies.
void SecondRun::change_pages(uint8_t *record, uint64_t shift) {
  if (shift == 0 || !SONDE_RECORD_HAS(record, sonde_access_pages_t, pages)) return;
  const auto &pages = *reinterpret_cast<const sonde_access_pages_t *>(record);
  const uint64_t page_bytes = pages.page_bytes;
  if (page_bytes == 0) return;
  const auto distance = static_cast<int64_t>(shift);
  const auto size = static_cast<int64_t>(page_bytes);
  const int64_t rest = ((distance % size) + size) % size;
  const int64_t steps = (distance - rest) / size + (2 * rest >= size && rest != 0 ? 1 : 0);
  if (rest != 0) ++counts_.pages_off;
  for (uint64_t &page : elements<uint64_t>(record, pages.pages)) page += static_cast<uint64_t>(steps);
}

void SecondRun::change_warps(uint8_t *record, int64_t time_ns) {
  if (!SONDE_RECORD_HAS(record, sonde_access_warps_t, data)) return;
  const sonde_span_t span = reinterpret_cast<const sonde_access_warps_t *>(record)->data;
  const std::span<uint8_t> data = elements<uint8_t>(record, span);
  for (size_t at = 0; at + sizeof(sonde_warp_access_t) <= data.size();) {
    const auto head = load<sonde_warp_access_t>(data.data() + at);
    const size_t bytes = size_t{head.size8} * 8;
    if (bytes < sizeof head || bytes > data.size() - at) return;
    constexpr uint32_t kMemoryBits = 0x30;  // 0: global
    if ((head.access & kMemoryBits) == 0) change_warp(data.data() + at, head, time_ns);
    at += bytes;
  }
}

void SecondRun::change_warp(uint8_t *entry, const sonde_warp_access_t &head, int64_t time_ns) {
  const size_t room = size_t{head.size8} * 8 - sizeof head;
  uint8_t *const addresses = entry + sizeof head;
  const size_t base_at = offsetof(sonde_warp_access_t, base);
  if (head.form == SONDE_WARP_ADDRESS64) {
    const size_t lanes = std::min<size_t>(static_cast<size_t>(__builtin_popcount(head.mask)), room / 8);
    for (size_t lane = 0; lane < lanes; ++lane) {
      uint8_t *const place = addresses + 8 * lane;
      store(place, address(load<uint64_t>(place), time_ns));
    }
    return;
  }
  // The least and the greatest address that the entry names must move together.
  int64_t least = INT64_MAX;
  int64_t greatest = INT64_MIN;
  size_t rank = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((head.mask >> lane & 1) == 0) continue;
    int64_t offset = int64_t{head.stride} * lane;
    if (head.form == SONDE_WARP_OFFSETS32) {
      if (4 * rank + 4 > room) break;
      offset = load<int32_t>(addresses + 4 * rank);
    }
    ++rank;
    least = std::min(least, offset);
    greatest = std::max(greatest, offset);
  }
  if (least > greatest) return;
  const uint64_t first = head.base + static_cast<uint64_t>(least);
  const uint64_t last = head.base + static_cast<uint64_t>(greatest);
  const uint64_t shift = address(first, time_ns) - first;
  if (last != first && join_.addresses.translate(last, time_ns).address - last != shift) ++counts_.warps_split;
  store(entry + base_at, head.base + shift);
}

void SecondRun::change_events(uint8_t *record, int64_t time_ns) {
  if (!SONDE_RECORD_HAS(record, sonde_access_events_t, data)) return;
  const sonde_span_t span = reinterpret_cast<const sonde_access_events_t *>(record)->data;
  const std::span<uint8_t> data = elements<uint8_t>(record, span);
  for (size_t at = 0; at + sizeof(sonde_device_event_t) <= data.size(); at += sizeof(sonde_device_event_t)) {
    const auto event = load<sonde_device_event_t>(data.data() + at);
    const bool has_global_address =
        event.kind >= SONDE_DEVICE_EVENT_COPY_ASYNC && event.kind <= SONDE_DEVICE_EVENT_BULK_REDUCE;
    if (has_global_address) {
      store(data.data() + at + offsetof(sonde_device_event_t, a), address(event.a, time_ns, event.b));
    }
  }
}

uint64_t SecondRun::address(uint64_t of_b, int64_t time_ns, uint64_t bytes) {
  using Kind = toolkit::AddressTranslation::Kind;
  const Place place = join_.addresses.translate(of_b, time_ns, std::max<uint64_t>(bytes, 1));
  switch (place.kind) {
    case Kind::kTranslated:
      ++counts_.addresses;
      break;
    case Kind::kOnlyInB:
      ++counts_.only_in_b;
      break;
    case Kind::kPastSmaller:
      ++counts_.past_smaller;
      break;
    case Kind::kNoRange:
      ++counts_.in_no_range;
      break;
  }
  if (place.is_moved) ++counts_.moved;
  return place.address;
}

// Values that stand for no time stay.
uint64_t SecondRun::raw_time(const sonde_clock_t &clock, uint64_t raw) const {
  if (raw == 0 || raw == UINT64_MAX || raw == uint64_t{1} << 63) return raw;
  return static_cast<uint64_t>(time_ns(clock, raw));
}

std::optional<uint32_t> SecondRun::launch_of(uint64_t id) const {
  const auto &by_id = join_.b.by_id;
  const auto found = std::lower_bound(by_id.begin(), by_id.end(), std::make_pair(id, uint32_t{0}));
  if (found == by_id.end() || found->first != id) return std::nullopt;
  return found->second;
}

uint64_t SecondRun::correlation(uint64_t of_b) const {
  const auto &known = join_.b.by_correlation;
  for (auto found = std::lower_bound(known.begin(), known.end(), std::make_pair(of_b, uint32_t{0}));
       of_b != 0 && found != known.end() && found->first == of_b; ++found) {
    const uint32_t partner = join_.launches.a_of_b[found->second];
    if (partner != kNoPartner) return join_.a.correlations[partner];
  }
  return 0;
}

uint64_t SecondRun::stream_handle(uint32_t context_of_b, uint64_t stream) const {
  const auto found = streams_.find({context_of_b, stream});
  if (found != streams_.end()) return found->second;
  if (stream == 0) return 0;
  const bool is_taken = std::binary_search(a_streams_.begin(), a_streams_.end(), stream);
  return is_taken ? stream | toolkit::AddressTranslation::kElsewhere : stream;
}

uint32_t SecondRun::context(uint32_t of_b) const {
  const auto found = contexts_.find(of_b);
  return found == contexts_.end() ? of_b : found->second;
}

uint64_t SecondRun::graph_exec(uint64_t of_b) const {
  const auto found = graphs_.find(of_b);
  return found == graphs_.end() ? 0 : found->second;
}

// Where the first run shows modules, its names for them hold.
uint64_t SecondRun::module(uint64_t of_b) {
  if (of_b == 0 || join_.a.count(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE) == 0) return of_b;
  const auto found = modules_.find(of_b);
  if (found != modules_.end()) return found->second;
  ++counts_.modules_unknown;
  return 0;
}

}  // namespace sonde::cli
