// Synthetic records for the tests and benchmarks of capture files.
#pragma once

#include <sonde/spaces/device.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace sonde::store::testing {

using Records = std::vector<uint8_t>;

template <typename Record>
void append(Records &out, const Record &record) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(&record);
  out.insert(out.end(), bytes, bytes + sizeof record);
}

// A kernel stream as training makes it: steps of `launches` launches of 30 names, each with its grid and its usual
// duration (+- 3 %), gaps of about a microsecond, now and then a pause; correlation grows by 1 to 4.
class TrainingStream {
 public:
  explicit TrainingStream(uint64_t seed = 1, uint32_t launches = 400) : random_(seed), step_(launches) {
    for (Launch &launch : step_) {
      const auto name = static_cast<uint32_t>(random_() % 30);
      std::mt19937_64 of_name(name + 1);
      launch.name = 100 + name;
      launch.grid_x = static_cast<uint32_t>(1 + of_name() % 4096) * (random_() % 4 == 0 ? 2 : 1);
      launch.grid_y = static_cast<uint32_t>(1 + of_name() % 16);
      launch.block = static_cast<uint32_t>(32 << of_name() % 5);
      launch.shared = static_cast<uint32_t>(of_name() % 4 * 16384);
      launch.registers = static_cast<uint32_t>(16 + of_name() % 200);
      launch.duration = 1500 + of_name() % 200000;
      launch.calls = 1 + random_() % 4;
    }
  }

  sonde_device_kernel_t next() {
    const Launch &launch = step_[at_];
    at_ = (at_ + 1) % step_.size();
    sonde_device_kernel_t record{};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, time_);
    record.end = time_ + launch.duration + random_() % (launch.duration / 16 + 1);
    record.correlation = correlation_ += launch.calls;
    record.stream = 7;
    record.context = 1;
    record.name = launch.name;
    record.grid[0] = launch.grid_x;
    record.grid[1] = launch.grid_y;
    record.grid[2] = 1;
    record.block[0] = launch.block;
    record.block[1] = 1;
    record.block[2] = 1;
    record.dynamic_shared = launch.shared;
    record.registers = launch.registers;
    time_ = record.end + 900 + random_() % 300 + (random_() % 200 == 0 ? random_() % 2000000 : 0);
    return record;
  }

  Records take(uint64_t count) {
    Records out;
    out.reserve(count * sizeof(sonde_device_kernel_t));
    for (uint64_t index = 0; index < count; ++index) append(out, next());
    return out;
  }

 private:
  struct Launch {
    uint32_t name, grid_x, grid_y, block, shared, registers;
    uint64_t duration, calls;
  };
  std::mt19937_64 random_;
  std::vector<Launch> step_;
  size_t at_ = 0;
  uint64_t time_ = 1760000000000000000u;
  uint64_t correlation_ = 1000;
};

// A record of 32 bytes with a 16-byte payload, as a program emits it in a loop.
struct SmallRecord {
  sonde_record_t header;
  uint64_t value;
  uint64_t counter;
};

inline Records small_records(uint64_t count, uint64_t seed = 1) {
  Records out;
  out.reserve(count * sizeof(SmallRecord));
  std::mt19937_64 random(seed);
  uint64_t time = 100000000000;
  for (uint64_t index = 0; index < count; ++index) {
    SmallRecord record{};
    SONDE_RECORD_INIT(&record, 64, 1, time += 20 + random() % 60);
    record.value = 0x7f0000000000 + random() % 65536 * 256;
    record.counter = index;
    append(out, record);
  }
  return out;
}

// Records of random shapes and contents: few or many shapes, constant, counting, repeating and random words,
// intervals with ends before their begin, tails of every size.
inline Records random_records(std::mt19937_64 &random) {
  Records out;
  const uint64_t shapes = 1 + random() % (random() % 4 == 0 ? 40 : 4);
  struct Shape {
    uint16_t size8, fixed8, space, type;
    std::vector<uint32_t> kinds;
  };
  std::vector<Shape> made;
  for (uint64_t index = 0; index < shapes; ++index) {
    Shape shape{};
    shape.fixed8 = static_cast<uint16_t>(2 + random() % 20);
    shape.size8 = static_cast<uint16_t>(shape.fixed8 + (random() % 3 == 0 ? random() % 60 : 0));
    shape.space = static_cast<uint16_t>(1 + random() % 100);
    shape.type = static_cast<uint16_t>(1 + random() % 63);
    for (int word = 0; word < shape.size8; ++word) shape.kinds.push_back(static_cast<uint32_t>(random() % 7));
    made.push_back(shape);
  }
  const uint64_t count = random() % (random() % 3 == 0 ? 3000 : 60);
  uint64_t time = random() % 2 == 0 ? random() : random() % 1000;
  std::vector<uint64_t> row;
  size_t at = 0;
  for (uint64_t index = 0; index < count; ++index) {
    if (random() % 3 == 0) at = random() % made.size();
    const Shape &shape = made[at];
    row.assign(shape.size8, 0);
    const uint16_t header[4] = {shape.size8, shape.fixed8, shape.space, shape.type};
    std::memcpy(row.data(), header, sizeof header);
    time += random() % 8 == 0 ? random() % 100000 - 50000 : random() % 500;
    for (size_t word = 1; word < row.size(); ++word) {
      switch (shape.kinds[word]) {
        case 0:
          row[word] = time;
          break;
        case 1:
          row[word] = time + random() % 1000 - 10;
          break;
        case 2:
          row[word] = word * 0x0101010101;
          break;
        case 3:
          row[word] = index;
          break;
        case 4:
          row[word] = random() % 5 * 0x100000001;
          break;
        case 5:
          row[word] = random();
          break;
        default:
          row[word] = random() % 50 == 0 ? random() : 0;
          break;
      }
    }
    const auto *const bytes = reinterpret_cast<const uint8_t *>(row.data());
    out.insert(out.end(), bytes, bytes + row.size() * 8);
  }
  return out;
}

inline uint64_t count_records(const Records &records) {
  uint64_t count = 0;
  for (size_t offset = 0; offset < records.size(); ++count) {
    uint16_t size8;
    std::memcpy(&size8, records.data() + offset, sizeof size8);
    offset += size8 * 8u;
  }
  return count;
}

// Cases of a property test: SONDE_CASES, or 200.
inline uint64_t cases() {
  const char *const text = std::getenv("SONDE_CASES");
  const uint64_t wanted = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return wanted == 0 ? 200 : wanted;
}

}  // namespace sonde::store::testing
