#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "options.h"

#include <sonde/spaces/access.h>

namespace sonde::workload {
namespace {

// Words between commas, without spaces around them.
std::vector<std::string> words_of(const std::string &text) {
  std::vector<std::string> out;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    size_t begin = at, end = comma;
    while (begin < end && text[begin] == ' ') ++begin;
    while (end > begin && text[end - 1] == ' ') --end;
    if (begin != end) out.push_back(text.substr(begin, end - begin));
    at = comma + 1;
  }
  return out;
}

[[noreturn]] void refuse(const std::string &text) { throw Failure(SONDE_E_INVALID, "workload: " + text); }

uint64_t access_types(const std::string &text) {
  constexpr auto bit = [](uint32_t type) { return uint64_t{1} << type; };
  // Each level is the basis of the next: pages and intervals want totals of objects too.
  constexpr uint64_t kObjects = bit(SONDE_ACCESS_OBJECT);
  uint64_t types = 0;
  for (const std::string &word : words_of(text)) {
    if (word == "none") {
      continue;
    } else if (word == "objects") {
      types |= kObjects;
    } else if (word == "pages") {
      types |= kObjects | bit(SONDE_ACCESS_PAGES);
    } else if (word == "intervals") {
      types |= kObjects | bit(SONDE_ACCESS_INTERVALS);
    } else if (word == "instructions") {
      types |= bit(SONDE_ACCESS_INSTRUCTION);
    } else if (word == "records") {
      types |= bit(SONDE_ACCESS_WARPS);
    } else {
      refuse("accesses: '" + word + "' is none of none, objects, pages, intervals, instructions, records");
    }
  }
  return types;
}

std::vector<uint32_t> block_numbers(const std::string &text) {
  std::vector<uint32_t> out;
  for (const std::string &word : words_of(text)) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) {
      refuse("word_heat_blocks: '" + word + "' is no number of a block");
    }
    out.push_back(number);
  }
  return out;
}

bool is_work(std::string_view name, Work &work) {
  for (size_t i = 0; i < kWorks; ++i) {
    work = static_cast<Work>(i);
    if (name == work_name(work)) return true;
  }
  return false;
}

// The value of one ceiling in a map; keys that are none are refused, so a slip of the pen is not a missing ceiling.
void read_ceilings(const Host &host, const sonde_config_t *tree, const std::string &path, Ceilings &ceilings) {
  const auto &service = host.service<sonde_config_service_t>();
  uint64_t count = 0;
  if (service.count(tree, path.c_str(), &count) < 0) return;
  for (uint64_t i = 0; i < count; ++i) {
    const char *key = nullptr;
    if (service.key(tree, path.c_str(), i, &key) < 0) refuse("ceilings: a map of names and values per second");
    const std::string place = path.empty() ? key : path + "." + key;
    double *into = nullptr;
    Work work;
    if (is_work(key, work)) {
      into = &ceilings.work[static_cast<size_t>(work)];
    } else if (std::string_view(key) == "dram" || std::string_view(key) == "l2") {
      into = &ceilings.traffic[std::string_view(key) == "dram" ? 0 : 1];
    } else {
      refuse("ceilings: '" + std::string(key) + "' is none of fp64, fp32, fp16, tensor, tensor_fp64, tensor_tf32, " +
             "tensor_fp8, dram, l2");
    }
    double value = 0;
    host.check(service.get_f64(tree, place.c_str(), &value));
    if (!(value > 0)) refuse("ceilings: " + std::string(key) + " must be above 0");
    if (*into == 0) *into = value;
  }
}

void read_ceilings_file(const Host &host, const std::string &path, Ceilings &ceilings) {
  if (path.empty()) return;
  const auto &service = host.service<sonde_config_service_t>();
  sonde_config_t *tree = nullptr;
  host.check(service.load(path.c_str(), &tree));
  try {
    const sonde_config_t *inner = nullptr;
    read_ceilings(host, tree, service.child(tree, "ceilings", &inner) >= 0 ? "ceilings" : "", ceilings);
  } catch (...) {
    service.release(tree);
    throw;
  }
  service.release(tree);
}

void read_flops(const Host &host, const sonde_config_t *tree, std::vector<GivenWork> &flops) {
  const auto &service = host.service<sonde_config_service_t>();
  uint64_t count = 0;
  if (service.count(tree, "flops", &count) < 0) return;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string place = "flops." + std::to_string(i);
    const char *kernel = nullptr, *work = nullptr;
    GivenWork given;
    if (service.get_text(tree, (place + ".kernel").c_str(), &kernel) < 0 ||
        service.get_f64(tree, (place + ".operations").c_str(), &given.operations) < 0) {
      refuse(place + ": {kernel: part of a name, operations: number, work: fp32} was expected");
    }
    given.part = kernel;
    if (service.get_text(tree, (place + ".work").c_str(), &work) >= 0 && !is_work(work, given.work)) {
      refuse(place + ".work: '" + work + "' is no kind of work, see ceilings");
    }
    flops.push_back(std::move(given));
  }
}

}  // namespace

Options read_options(const Config &config) {
  Options options;
  options.idle_share = config.f64("idle_share");
  options.idle_span_ns = config.time_ns("idle_span");
  options.launch_gap_ns = config.time_ns("launch_gap");
  options.launch_bound_kernel_ns = config.time_ns("launch_bound_kernel_time");
  options.group_scopes = config.boolean("group_scopes");
  struct Integer {
    const char *name;
    int64_t Options::*member;
  };
  constexpr std::array kIntegers = {
      Integer{"launch_bound_kernels", &Options::launch_bound_kernels},
      Integer{"tiny_copy_bytes", &Options::tiny_copy_bytes},
      Integer{"tiny_copies", &Options::tiny_copies},
      Integer{"concurrency_streams", &Options::concurrency_streams},
      Integer{"longest_gaps", &Options::longest_gaps},
      Integer{"timeline_rows", &Options::timeline_rows},
      Integer{"exact_values", &Options::exact_values},
      Integer{"reorder_records", &Options::reorder_records},
      Integer{"join_records", &Options::join_records},
      Integer{"name_limit", &Options::name_limit},
      Integer{"hot_objects", &Options::hot_objects},
      Integer{"kernel_objects", &Options::kernel_objects},
      Integer{"hot_blocks", &Options::hot_blocks},
      Integer{"block_bytes", &Options::block_bytes},
      Integer{"object_blocks", &Options::object_blocks},
      Integer{"time_bins", &Options::time_bins},
      Integer{"reuse_intervals", &Options::reuse_intervals},
      Integer{"reuse_pairs", &Options::reuse_pairs},
      Integer{"remembered_launches", &Options::remembered_launches},
      Integer{"instruction_limit", &Options::instruction_limit},
      Integer{"warp_launches", &Options::warp_launches},
      Integer{"divergence_blocks", &Options::divergence_blocks},
      Integer{"divergence_instructions", &Options::divergence_instructions},
      Integer{"reuse_words", &Options::reuse_words},
      Integer{"word_heat_limit", &Options::word_heat_limit},
      Integer{"word_heat_sectors", &Options::word_heat_sectors},
      Integer{"word_heat_launches", &Options::word_heat_launches},
      Integer{"reuse_least_words", &Options::reuse_least_words},
  };
  for (const Integer &integer : kIntegers) options.*integer.member = config.i64(integer.name);
  struct Number {
    const char *name;
    double Options::*member;
  };
  constexpr std::array kNumbers = {
      Number{"launch_bound_idle_share", &Options::launch_bound_idle_share},
      Number{"blocking_copy_share", &Options::blocking_copy_share},
      Number{"tiny_copy_share", &Options::tiny_copy_share},
      Number{"concurrency_share", &Options::concurrency_share},
      Number{"divergence_cosine", &Options::divergence_cosine},
      Number{"atomic_high", &Options::atomic_high},
      Number{"atomic_medium", &Options::atomic_medium},
      Number{"atomic_medium_warp", &Options::atomic_medium_warp},
      Number{"atomic_low", &Options::atomic_low},
      Number{"atomic_low_warp", &Options::atomic_low_warp},
      Number{"grid_reuse", &Options::grid_reuse},
      Number{"block_reuse", &Options::block_reuse},
      Number{"uncoalesced_density", &Options::uncoalesced_density},
      Number{"uncoalesced_density_high", &Options::uncoalesced_density_high},
      Number{"uncoalesced_cold", &Options::uncoalesced_cold},
      Number{"uncoalesced_cold_high", &Options::uncoalesced_cold_high},
      Number{"streaming_cold", &Options::streaming_cold},
      Number{"streaming_cold_high", &Options::streaming_cold_high},
      Number{"broadcast_addresses", &Options::broadcast_addresses},
      Number{"broadcast_addresses_high", &Options::broadcast_addresses_high},
      Number{"half_lanes", &Options::half_lanes},
      Number{"footprint_ratio", &Options::footprint_ratio},
      Number{"uncoalesced_ratio", &Options::uncoalesced_ratio},
      Number{"uncoalesced_share", &Options::uncoalesced_share},
      Number{"bank_conflict_ratio", &Options::bank_conflict_ratio},
      Number{"bank_conflict_share", &Options::bank_conflict_share},
      Number{"divergence_variation", &Options::divergence_variation},
      Number{"hot_block_share", &Options::hot_block_share},
      Number{"hot_block_bytes_share", &Options::hot_block_bytes_share},
      Number{"roofline_time_share", &Options::roofline_time_share},
      Number{"roofline_attained", &Options::roofline_attained},
  };
  for (const Number &number : kNumbers) options.*number.member = config.f64(number.name);
  options.access_types = access_types(config.text("accesses"));
  options.optimizer_scopes = words_of(config.text("optimizer_scopes"));
  options.layer_domain = config.text("layer_domain");
  options.word_heat_blocks = block_numbers(config.text("word_heat_blocks"));
  options.heat_map_picture = config.text("heat_map_picture");
  options.roofline_picture = config.text("roofline_picture");
  return options;
}

void read_trees(const Host &host, const Config &config, Options &options) {
  read_ceilings(host, config.get(), "ceilings", options.ceilings);
  read_ceilings_file(host, config.text("ceilings_file"), options.ceilings);
  read_flops(host, config.get(), options.flops);
}

}  // namespace sonde::workload
