#include "core/demand.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <vector>

namespace sonde::core {
namespace {

constexpr size_t kPageBytes = 4096;
static_assert(SONDE_SPACE_COUNT * sizeof(uint64_t) <= kPageBytes);

}  // namespace

Demand::Demand() : levels_(new std::atomic<uint8_t>[SONDE_SPACE_COUNT * SONDE_TYPE_COUNT]) {
  for (uint32_t i = 0; i < SONDE_SPACE_COUNT * SONDE_TYPE_COUNT; ++i) levels_[i].store(0, std::memory_order_relaxed);
  void *const page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  ::madvise(page, kPageBytes, MADV_WIPEONFORK);
  words_ = static_cast<uint64_t *>(page);
}

Demand::~Demand() { ::munmap(words_, kPageBytes); }

void Demand::set(std::span<const sonde_interest_t> interests, bool on) {
  std::vector<uint8_t> levels(SONDE_SPACE_COUNT * SONDE_TYPE_COUNT, SONDE_LEVEL_NONE);
  for (const sonde_interest_t &interest : interests) {
    for (uint32_t type = 1; type < SONDE_TYPE_COUNT; ++type) {
      if (((interest.types >> type) & 1) == 0) continue;
      uint8_t &level = levels[interest.space * SONDE_TYPE_COUNT + type];
      level = std::max(level, static_cast<uint8_t>(interest.level));
    }
  }
  for (uint32_t space = 0; space < SONDE_SPACE_COUNT; ++space) {
    uint64_t word = 0;
    for (uint32_t type = 1; type < SONDE_TYPE_COUNT; ++type) {
      const uint8_t level = levels[space * SONDE_TYPE_COUNT + type];
      levels_[space * SONDE_TYPE_COUNT + type].store(level, std::memory_order_relaxed);
      if (level != SONDE_LEVEL_NONE) word |= uint64_t{1} << type;
    }
    __atomic_store_n(&words_[space], on ? word : 0, __ATOMIC_RELAXED);
  }
}

}  // namespace sonde::core
