// A program that embeds Sonde, in C++: emits kernels from two threads and sums them in a subscription.
#include <sonde/sonde.hpp>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kThreads = 2;
constexpr uint64_t kKernels = 1000;

void emit_kernels(const sonde::Session &session) {
  sonde::Writer writer = session.writer();
  const sonde_string_t name = session.intern("kernel");
  for (uint64_t i = 0; i < kKernels; ++i) {
    sonde_device_kernel_t kernel{};
    kernel.name = name;
    kernel.grid[0] = 1;
    const uint64_t begin = sonde_stamp();
    kernel.end = begin + 1;
    writer.emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, kernel, begin);
  }
}

int run() {
  const sonde::Host host(sonde_host());
  sonde::Session session = sonde::Session::open(host);
  std::atomic<uint64_t> kernels = 0, invalid = 0, unnamed = 0;
  sonde::Subscription subscription = session.subscribe(
      "sum", {sonde::only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_KERNEL})}, [&](const sonde::Batch &batch) {
        batch.for_each<sonde_device_kernel_t>(
            SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL,
            [&](const sonde_device_kernel_t &kernel, const sonde::Interval &interval) {
              ++kernels;
              if (!interval.valid()) ++invalid;
              if (std::string(session.text(batch.source(), kernel.name)) != "kernel") ++unnamed;
            });
      });
  session.start();
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back([&] { emit_kernels(session); });
  for (std::thread &thread : threads) thread.join();
  session.stop();
  for (const sonde_loss_t &loss : session.losses()) std::fprintf(stderr, "lost: cause %u\n", loss.cause);
  std::printf("embed: %llu kernels, %llu invalid, %llu unnamed\n", static_cast<unsigned long long>(kernels),
              static_cast<unsigned long long>(invalid), static_cast<unsigned long long>(unnamed));
  bool refused = false;
  try {
    session.start();  // a session runs once
  } catch (const sonde::Failure &failure) {
    refused = failure.status() == SONDE_E_STATE;
  }
  return kernels == kThreads * kKernels && invalid == 0 && unnamed == 0 && refused ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const sonde::Failure &failure) {
    std::fprintf(stderr, "embed: %s (status %d)\n", failure.what(), static_cast<int>(failure.status()));
    return 1;
  }
}
