// Big captures to measure analyses on, and what replaying one costs without any.
//
//   analyses_capture generate FILE RECORDS   a capture file of a training loop, joined from accesses and times
//   analyses_capture floor FILE              replays it to one subscriber that counts; prints JSON
//
// A step of the loop has 24 layers, forward and backward, 48 kernels: each a launch, three touched tensors, the bytes
// that it wrote, and a record of the device; every fourth a histogram of 16 pages. Activations live from their layer's
// forward to its backward pass; eight more tensors live for one kernel. A copy brings each step's input, and an
// allocation outside the pool comes and goes.
#include <sys/resource.h>
#include <sonde/sonde.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kLayers = 24;
constexpr uint64_t kSegments = 8;
constexpr uint64_t kSegmentBytes = uint64_t{256} << 20;
constexpr uint64_t kTensorBytes = uint64_t{4} << 20;
constexpr uint64_t kPool = 0x7f0000000000;     // of the segments, side by side
constexpr uint64_t kScratch = 0x7e0000000000;  // outside the pool
constexpr uint64_t kInput = 0x7d0000000000;    // on the host
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kLaunchNs = 10'000;  // from one launch to the next
constexpr uint64_t kBatchBytes = 512 << 10;

// Slots of 4 MiB in the pool: parameters, then activations, then what lives for one kernel.
constexpr uint64_t slot(uint64_t number) { return kPool + number * kTensorBytes; }
constexpr uint64_t parameter(uint64_t layer) { return slot(layer); }
constexpr uint64_t activation(uint64_t layer) { return slot(64 + layer); }
constexpr uint64_t temporary(uint64_t number) { return slot(128 + number % 8); }

const sonde::Host &host() {
  static const sonde::Host table(sonde_host());
  return table;
}

// Records of one stream on their way to the file.
class Stream {
 public:
  Stream(sonde_file_writer_t *writer, uint64_t number) : writer_(writer), number_(number) {
    clock_.struct_size = sizeof clock_;
  }

  template <typename T>
  T make(uint32_t space, uint32_t type, uint64_t time) {
    T record{};
    SONDE_RECORD_INIT(&record, space, type, time);
    return record;
  }

  template <typename T>
  void add(const T &record) {
    add(record, {});
  }
  // With words behind the fixed part, which span fields point at.
  template <typename T>
  void add(const T &record, const std::vector<uint64_t> &words) {
    const auto *const bytes = reinterpret_cast<const uint8_t *>(&record);
    const size_t begin = data_.size();
    data_.insert(data_.end(), bytes, bytes + sizeof record);
    if (!words.empty()) {
      const auto *const more = reinterpret_cast<const uint8_t *>(words.data());
      data_.insert(data_.end(), more, more + words.size() * 8);
    }
    auto *const header = reinterpret_cast<sonde_record_t *>(data_.data() + begin);
    header->size8 = static_cast<uint16_t>((data_.size() - begin) / 8);
    if (count_ == 0) first_ = header->time;
    last_ = header->time;
    ++count_;
    ++total_;
    if (data_.size() >= kBatchBytes) flush();
  }

  void flush() {
    if (count_ == 0) return;
    sonde_batch_t batch{};
    batch.struct_size = sizeof batch;
    batch.stream = number_;
    batch.sequence = sequence_++;
    batch.data = data_.data();
    batch.bytes = data_.size();
    batch.count = count_;
    batch.first_time = first_;
    batch.last_time = last_;
    batch.watermark = last_;
    batch.clock = &clock_;
    host().check(host()
                     .service<sonde_store_service_t>("sonde.store/1", SONDE_NEED(sonde_store_service_t, complete))
                     .append(writer_, &batch));
    data_.clear();
    count_ = 0;
  }

  uint64_t total() const { return total_; }

 private:
  sonde_file_writer_t *writer_;
  uint64_t number_;
  sonde_clock_t clock_{0, SONDE_CLOCK_UNIX_NS, 0, 0, 1, 0, 0};
  std::vector<uint8_t> data_;
  uint64_t sequence_ = 0, count_ = 0, total_ = 0, first_ = 0, last_ = 0;
};

class Generator {
 public:
  explicit Generator(sonde_file_writer_t *writer)
      : access_(writer, 2), memory_(writer, 3), framework_(writer, 4), device_(writer, 5) {
    const auto &capture = host().service<sonde_capture_service_t>();
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::string name = "layer_kernel_" + std::to_string(i);
      host().check(capture.intern(name.data(), name.size(), &names_[i]));
    }
    host().check(capture.intern("cuda", 4, &cuda_));
    for (uint64_t i = 0; i < kSegments; ++i) allocate(kPool + i * kSegmentBytes, kSegmentBytes);
    for (uint64_t layer = 0; layer < kLayers; ++layer) tensor(parameter(layer), true);
  }

  uint64_t total() const { return access_.total() + memory_.total() + framework_.total() + device_.total(); }
  int64_t now() const { return static_cast<int64_t>(time_); }

  void step() {
    copy_in();
    allocate(kScratch, kTensorBytes);
    for (uint64_t layer = 0; layer < kLayers; ++layer) {
      tensor(activation(layer), true);
      kernel(layer, {parameter(layer), layer == 0 ? kScratch : activation(layer - 1), activation(layer)});
    }
    for (uint64_t layer = kLayers; layer-- > 0;) {
      const bool has_temporary = layer % 3 == 0;
      if (has_temporary) tensor(temporary(layer), true);
      kernel(kLayers + layer,
             {activation(layer), has_temporary ? temporary(layer) : activation(layer == 0 ? 0 : layer - 1),
              parameter(layer)});
      if (has_temporary) tensor(temporary(layer), false);
      tensor(activation(layer), false);
    }
    auto free = memory_.make<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, tick());
    free.address = kScratch;
    free.bytes = kTensorBytes;
    free.kind = SONDE_MEMORY_DEVICE;
    memory_.add(free);
    // Streams of a file may lie apart by a chunk, not by more.
    if (++steps_ % 16 == 0) flush();
  }

  void flush() {
    for (Stream *const stream : {&access_, &memory_, &framework_, &device_}) stream->flush();
  }

 private:
  uint64_t tick() { return time_ += 100; }

  void allocate(uint64_t address, uint64_t bytes) {
    auto record = memory_.make<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, tick());
    record.address = address;
    record.bytes = bytes;
    record.kind = SONDE_MEMORY_DEVICE;
    memory_.add(record);
  }

  void tensor(uint64_t address, bool begins) {
    auto record = framework_.make<sonde_framework_tensor_t>(
        SONDE_SPACE_FRAMEWORK, begins ? SONDE_FRAMEWORK_TENSOR_ALLOCATE : SONDE_FRAMEWORK_TENSOR_FREE, tick());
    record.address = address;
    record.bytes = kTensorBytes;
    record.name = cuda_;
    record.thread = 1;
    framework_.add(record);
  }

  void copy_in() {
    ++correlation_;
    auto transfer = access_.make<sonde_access_transfer_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER, tick());
    transfer.source = kInput;
    transfer.target = parameter(0);
    transfer.bytes = transfer.width = kTensorBytes;
    transfer.rows = 1;
    transfer.correlation = correlation_;
    transfer.kind = SONDE_COPY_HOST_TO_DEVICE;
    access_.add(transfer);
    auto copy = device_.make<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, time_ + 2000);
    copy.end = copy.header.time + 1000;
    copy.correlation = correlation_;
    copy.bytes = kTensorBytes;
    copy.kind = SONDE_COPY_HOST_TO_DEVICE;
    copy.source_memory = SONDE_MEMORY_PINNED;
    copy.destination_memory = SONDE_MEMORY_DEVICE;
    device_.add(copy);
    time_ += kLaunchNs;
  }

  // The first two are read, the last is written.
  void kernel(uint64_t number, const std::array<uint64_t, 3> &touched) {
    ++correlation_;
    time_ += kLaunchNs;
    auto launch = access_.make<sonde_access_launch_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, time_);
    launch.launch = launch.correlation = correlation_;
    launch.accesses = 3 * kTensorBytes / 4;
    launch.name = names_[number % names_.size()];
    launch.grid[0] = 4096;
    launch.block[0] = 256;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.kernel_period = launch.block_period = 1;
    launch.flags = SONDE_LAUNCH_WATCHED;
    access_.add(launch);
    for (size_t i = 0; i < touched.size(); ++i) object(touched[i], i + 1 == touched.size());
    auto written = access_.make<sonde_access_intervals_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS, time_);
    written.launch = correlation_;
    written.address = touched[2];
    written.bytes = written.touched = kTensorBytes;
    written.edges = {sizeof written, 2};
    written.kind = 2;
    written.granule = 1;
    access_.add(written, {0, kTensorBytes});
    if (correlation_ % 4 == 0) pages(touched[0]);
    auto ran = device_.make<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, time_ + 3000);
    ran.end = ran.header.time + 4000 + correlation_ % 1000;
    ran.correlation = correlation_;
    ran.name = launch.name;
    std::copy(std::begin(launch.grid), std::end(launch.grid), std::begin(ran.grid));
    std::copy(std::begin(launch.block), std::end(launch.block), std::begin(ran.block));
    ran.registers = 32;
    device_.add(ran);
  }

  void object(uint64_t address, bool is_written) {
    auto record = access_.make<sonde_access_object_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT, time_);
    record.launch = correlation_;
    record.address = address;
    record.bytes = kTensorBytes;
    (is_written ? record.writes : record.reads) = kTensorBytes / 4;
    (is_written ? record.write_bytes : record.read_bytes) = kTensorBytes;
    record.object_kind = address == kScratch ? SONDE_OBJECT_IS_ALLOCATION : SONDE_OBJECT_IS_TENSOR;
    access_.add(record);
  }

  void pages(uint64_t address) {
    constexpr uint32_t kPages = 16;
    auto record = access_.make<sonde_access_pages_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_PAGES, time_);
    record.launch = correlation_;
    record.address = address;
    record.bytes = kTensorBytes;
    record.page_bytes = kPageBytes;
    record.pages = {sizeof record, kPages};
    record.counts = {sizeof record + 8 * kPages, kPages};
    std::vector<uint64_t> words;
    for (uint64_t i = 0; i < kPages; ++i) words.push_back(address / kPageBytes + i * 64);
    for (uint64_t i = 0; i < kPages; ++i) words.push_back(1024 + i);
    access_.add(record, words);
  }

  Stream access_, memory_, framework_, device_;
  std::array<sonde_string_t, 48> names_{};
  sonde_string_t cuda_ = 0;
  uint64_t time_ = 1'700'000'000'000'000'000;
  uint64_t correlation_ = 0;
  uint64_t steps_ = 0;
};

int generate(const char *path, uint64_t records) {
  const auto &store =
      host().service<sonde_store_service_t>("sonde.store/1", SONDE_NEED(sonde_store_service_t, complete));
  sonde_source_info_t source{};
  source.struct_size = sizeof source;
  source.host = "bench";
  source.program = "training";
  source.command = "training";
  source.process = 1;
  source.start_ns = 1'700'000'000'000'000'000;
  sonde_writer_options_t options{};
  options.struct_size = sizeof options;
  sonde_file_writer_t *writer = nullptr;
  host().check(store.create(path, &source, &options, &writer));
  Generator generator(writer);
  while (generator.total() < records) generator.step();
  generator.flush();
  host().check(store.complete(writer, generator.now()));
  std::printf("{\"records\": %" PRIu64 "}\n", generator.total());
  return 0;
}

double seconds_of(const timeval &time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

int floor_of(const char *path) {
  const auto &store = host().service<sonde_store_service_t>();
  sonde_capture_t *capture = nullptr;
  host().check(store.open(path, &capture));
  uint64_t records = 0, bytes = 0, sum = 0;
  {
    sonde::Session session = sonde::Session::open(host());
    std::vector<sonde_interest_t> interests;
    for (const uint32_t space :
         {SONDE_SPACE_SESSION, SONDE_SPACE_DEVICE, SONDE_SPACE_MEMORY, SONDE_SPACE_FRAMEWORK, SONDE_SPACE_ACCESS}) {
      interests.push_back(sonde::every(space));
    }
    // Looks at each record's header, which any analysis must.
    session
        .subscribe("floor", interests,
                   [&](const sonde::Batch &batch) {
                     for (const sonde::Record record : batch) {
                       ++records;
                       bytes += SONDE_RECORD_BYTES(record.header());
                       sum += record.header()->time;
                     }
                   })
        .release();
    session.start();
    host().check(store.replay(capture, session.get(), nullptr, nullptr));
    session.stop();
  }
  host().check(store.close(capture));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"records\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"check\": %" PRIu64
              ", \"cpu_seconds\": %.6f, \"peak_rss\": %ld}\n",
              records, bytes, sum & 0xffff, seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
              usage.ru_maxrss * 1024L);
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "generate" && argc == 4) return generate(argv[2], std::strtoull(argv[3], nullptr, 10));
    if (command == "floor" && argc == 3) return floor_of(argv[2]);
  } catch (const sonde::Failure &failure) {
    std::fprintf(stderr, "analyses_capture: %s\n", failure.what());
    return 1;
  }
  std::fprintf(stderr, "usage: analyses_capture generate FILE RECORDS | floor FILE\n");
  return 2;
}
