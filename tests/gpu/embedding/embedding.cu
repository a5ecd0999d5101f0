// A program that embeds Sonde for long: many short sessions, and one session over many launches.
//
//   embedding sessions N   N sessions, each with a few launches; every other one asks for more than kernels
//   embedding launches N   one session over N kernels: replays of a graph that was made before the session, and plain
//                          launches between them
//
// Prints one JSON object: resident memory (KiB) and open files over time, kernels launched and delivered, losses. Exit
// code 0 when every kernel arrived, memory and files stayed flat after the warm-up, and the clock stayed the host's.
#include <cuda_runtime.h>
#include <unistd.h>
#include <sonde/sonde.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr int kNodes = 1000;
constexpr long kSlackKiB = 8192;  // what allocators of the driver and the C library may keep

__global__ void tiny(unsigned int *value) { *value += 1; }

void check(cudaError_t result, const char *what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(2);
}

long resident_kib() {
  long size = 0, resident = 0;
  FILE *file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

struct Sample {
  double seconds;
  uint64_t done;
  long resident;
  long files;
};

// A run with the port of CUDA, and a subscriber that counts kernels and looks at their stamps.
class Capture {
 public:
  Capture(const sonde::Host &host, const std::string &options, bool more)
      : host_(host), runs_(host.service<sonde_run_service_t>()) {
    const auto &configs = host.service<sonde_config_service_t>();
    sonde_config_t *config = nullptr;
    host.check(configs.parse(("ports: {cuda: {" + options + "}}").c_str(), "embedding", &config));
    const sonde_status opened = runs_.open(config, &run_);
    configs.release(config);
    host.check(opened);
    sonde_session_t *session = nullptr;
    host.check(runs_.session(run_, &session));
    session_.emplace_back(sonde::Session::borrow(host, session));
    std::vector<sonde_interest_t> interests = {sonde::only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_KERNEL})};
    if (more) {
      interests.push_back(sonde::every(SONDE_SPACE_MEMORY));
      interests.push_back(sonde::every(SONDE_SPACE_OBJECT));
    }
    subscription_ = session_[0].subscribe("embedding", interests, [this](const sonde::Batch &batch) {
      for (const sonde::Record record : batch) {
        if (!record.is(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL)) continue;
        sonde_device_kernel_t storage;
        const auto &kernel = record.as(storage);
        ++kernels;
        if (!record.interval(kernel.end).valid()) ++invalid;
        const uint64_t time = record.header()->time;
        if (time < begun_ || time > sonde_stamp()) ++strange;
      }
    });
    begun_ = sonde_stamp();
    host.check(runs_.start(run_));
  }

  // Records that were lost on the way.
  uint64_t finish() {
    host_.check(runs_.finish(run_));
    const uint64_t lost = session_[0].status().lost_records;
    subscription_.reset();
    session_.clear();
    host_.check(runs_.close(run_));
    return lost;
  }

  std::atomic<uint64_t> kernels{0};
  std::atomic<uint64_t> invalid{0};
  std::atomic<uint64_t> strange{0};  // stamps that are not the host's clock

 private:
  sonde::Host host_;
  const sonde_run_service_t &runs_;
  sonde_run_t *run_ = nullptr;
  std::vector<sonde::Session> session_;
  sonde::Subscription subscription_;
  uint64_t begun_ = 0;
};

struct Totals {
  uint64_t launched = 0, delivered = 0, lost = 0, invalid = 0, strange = 0;
};

void finish(Capture &capture, Totals &totals) {
  totals.lost += capture.finish();
  totals.delivered += capture.kernels;
  totals.invalid += capture.invalid;
  totals.strange += capture.strange;
}

int report(const char *mode, uint64_t wanted, const std::vector<Sample> &samples, const Totals &totals) {
  std::printf("{\"embedding\":\"%s\",\"wanted\":%llu,\"samples\":[", mode, static_cast<unsigned long long>(wanted));
  for (size_t i = 0; i < samples.size(); ++i) {
    std::printf("%s{\"seconds\":%.2f,\"done\":%llu,\"resident_kib\":%ld,\"files\":%ld}", i == 0 ? "" : ",",
                samples[i].seconds, static_cast<unsigned long long>(samples[i].done), samples[i].resident,
                samples[i].files);
  }
  // The first sample follows the warm-up.
  const long growth = samples.back().resident - samples.front().resident;
  const bool flat = growth <= kSlackKiB && samples.back().files <= samples.front().files;
  const bool whole = totals.delivered == totals.launched && totals.lost == 0;
  const bool good = flat && whole && totals.invalid == 0 && totals.strange == 0;
  std::printf(
      "],\"growth_kib\":%ld,\"launched\":%llu,\"delivered\":%llu,\"lost\":%llu,\"invalid_times\":%llu,"
      "\"strange_times\":%llu,\"flat\":%s,\"whole\":%s,\"good\":%s}\n",
      growth, static_cast<unsigned long long>(totals.launched), static_cast<unsigned long long>(totals.delivered),
      static_cast<unsigned long long>(totals.lost), static_cast<unsigned long long>(totals.invalid),
      static_cast<unsigned long long>(totals.strange), flat ? "true" : "false", whole ? "true" : "false",
      good ? "true" : "false");
  return good ? 0 : 1;
}

int many_sessions(const sonde::Host &host, uint64_t wanted, unsigned int *value) {
  constexpr uint64_t kWarmUp = 50;
  constexpr int kLaunches = 20;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Sample> samples;
  Totals totals;
  for (uint64_t i = 0; i < wanted + kWarmUp; ++i) {
    Capture capture(host, "", i % 2 == 1);
    for (int launch = 0; launch < kLaunches; ++launch) tiny<<<1, 1>>>(value);
    check(cudaDeviceSynchronize(), "synchronise");
    totals.launched += kLaunches;
    finish(capture, totals);
    if (i + 1 < kWarmUp || (i + 1 - kWarmUp) % (wanted / 10 + 1) != 0) continue;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    samples.push_back({elapsed.count(), i + 1, resident_kib(), open_files()});
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  samples.push_back({elapsed.count(), wanted + kWarmUp, resident_kib(), open_files()});
  return report("sessions", wanted, samples, totals);
}

int many_launches(const sonde::Host &host, uint64_t wanted, unsigned int *value) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayed = nullptr;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  for (int node = 0; node < kNodes; ++node) tiny<<<1, 1, 0, stream>>>(value);
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&replayed, graph, 0), "instantiate");

  const auto begin = std::chrono::steady_clock::now();
  std::vector<Sample> samples;
  Totals totals;
  Capture capture(host, "", false);
  const uint64_t warm_up = wanted / 8;  // until the pool has as many buffers as it needs
  uint64_t next = warm_up;
  while (totals.launched < wanted + warm_up) {
    check(cudaGraphLaunch(replayed, stream), "replay");
    for (int i = 0; i < 10; ++i) tiny<<<1, 1, 0, stream>>>(value);
    totals.launched += kNodes + 10;
    // The device runs at most this far behind, so buffers stay few.
    if (totals.launched % (100 * (kNodes + 10)) == 0) check(cudaStreamSynchronize(stream), "synchronise");
    if (totals.launched < next) continue;
    next += wanted / 20;
    check(cudaStreamSynchronize(stream), "synchronise");
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    samples.push_back({elapsed.count(), totals.launched, resident_kib(), open_files()});
  }
  check(cudaStreamSynchronize(stream), "synchronise");
  finish(capture, totals);
  check(cudaGraphExecDestroy(replayed), "destroy");
  check(cudaGraphDestroy(graph), "destroy");
  check(cudaStreamDestroy(stream), "destroy");
  return report("launches", wanted, samples, totals);
}

}  // namespace

int main(int count, char **words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: embedding sessions|launches N\n");
    return 2;
  }
  const uint64_t wanted = std::strtoull(words[2], nullptr, 10);
  unsigned int *value = nullptr;
  check(cudaMalloc(&value, sizeof(*value)), "allocate");
  try {
    const sonde::Host host(sonde_host());
    if (std::strcmp(words[1], "sessions") == 0) return many_sessions(host, wanted, value);
    if (std::strcmp(words[1], "launches") == 0) return many_launches(host, wanted, value);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "embedding: %s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "embedding: unknown mode %s\n", words[1]);
  return 2;
}
