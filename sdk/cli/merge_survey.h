// First pass of `sonde merge`: what of a capture the join needs.
#pragma once

#include <toolkit/run_join.h>
#include <sonde/sonde.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sonde::cli {

// One number for each (name, grid, block), the same in both runs.
class KernelKeys {
 public:
  using Extent = std::array<uint32_t, 3>;

  uint32_t key(std::string_view name, const uint32_t (&grid)[3], const uint32_t (&block)[3]);
  // "add<<<4x1x1, 128x1x1>>>"
  std::string describe(uint32_t key) const;

 private:
  using Key = std::tuple<uint32_t, Extent, Extent>;
  std::map<std::string, uint32_t, std::less<>> names_;
  std::vector<std::string> text_of_;
  std::map<Key, uint32_t> keys_;
  std::vector<Key> key_of_;
};

struct SurveyedModule {
  uint64_t module = 0;
  uint64_t hash = 0;
  uint64_t bytes = 0;
};

struct Survey {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;  // records by (space, type)

  toolkit::JoinLaunches launches;
  bool launches_are_accesses = false;                // they are sonde.access records; else kernels of sonde.device
  std::vector<uint64_t> correlations;                // by launch
  std::vector<int64_t> call_ns;                      // by launch: when the host made it, 0: unknown
  std::vector<std::pair<uint64_t, uint32_t>> by_id;  // launch ordinals with their index, sorted
  std::vector<std::pair<uint64_t, uint32_t>> by_correlation;  // not 0, sorted

  std::vector<toolkit::RangeLives::Life> lives;
  uint64_t unmatched_frees = 0;

  std::vector<SurveyedModule> modules;  // loaded, in order
  uint64_t last_stream = 0;             // greatest number of a stream of the capture
  int64_t first_ns = INT64_MAX;

  uint64_t count(uint32_t space, uint32_t type) const {
    const auto found = counts.find({space, type});
    return found == counts.end() ? 0 : found->second;
  }
};

// Ranges of one group may be partners: those of one device, of the host's memory, and apart from them those that are
// cut out of others. Variables of modules are apart too: modules are loaded when they are needed, and not every port sees
// their variables, so how many there are says nothing about the program.
inline constexpr uint32_t kHostGroup = 0x3fff'fffe;
inline constexpr uint32_t kInnerGroups = 0x8000'0000;
inline constexpr uint32_t kStaticGroups = 0x4000'0000;

enum class Role {
  kTraced,    // the launches are the device's kernels
  kAccessed,  // the launches are those of sonde.access where there are any
};

// Reads the capture file at `path`. Memory: about 90 bytes a launch and 100 an allocation.
Survey survey_capture(const Host &host, const std::string &path, Role role, KernelKeys &keys);

}  // namespace sonde::cli
