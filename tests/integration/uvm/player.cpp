// A program that makes the calls of the streaming workload in uvm_integration_test.cpp against a driver and a CUPTI of the
// tests' own, and prints the calls that the driver got. Arguments: the fake library, allocations, bytes, launches, kernel.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cupti_types.h"
#include "fake_paging.h"
#include "paging_types.h"

namespace {

using namespace sonde::cuda::paging;

sonde::test::FakePaging *fake = nullptr;

void call(uint32_t callback, uint32_t site, const void *parameters, const char *symbol) {
  if (fake->callback == nullptr || fake->enabled.count(callback) == 0) return;
  const int32_t result = 0;
  CallData data = {};
  data.site = site;
  data.parameters = parameters;
  data.symbol = symbol;
  data.result = &result;
  data.context = reinterpret_cast<void *>(7);
  fake->callback(fake->user, sonde::cuda::kDomainDriver, callback, &data);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  void *const library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return 3;
  fake = reinterpret_cast<sonde::test::FakePagingFunction>(dlsym(library, sonde::test::kFakePagingName))();
  // What the driver does when it starts.
  auto *const inject = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "InitializeInjection"));
  if (inject != nullptr) inject();
  const uint64_t bytes = std::strtoull(argv[3], nullptr, 10);
  for (int index = 0; index < std::atoi(argv[2]); ++index) {
    uint64_t address = (uint64_t{1} << 40) + static_cast<uint64_t>(index) * bytes;
    const AllocateParameters parameters = {&address, bytes, 1};
    call(kMemAllocManaged, kCallLeaves, &parameters, nullptr);
  }
  for (int index = 0; index < std::atoi(argv[4]); ++index) {
    alignas(8) uint8_t parameters[64] = {};
    const uint64_t stream = 1;
    std::memcpy(parameters + 40, &stream, sizeof(stream));
    call(307, kCallEnters, parameters, argv[5]);
    fake->add("launch");
  }
  for (const std::string &line : fake->calls) std::printf("%s\n", line.c_str());
  return 0;
}
