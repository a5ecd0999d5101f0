// What paging costs on a card: the constants of the simulator.
//
// tests/gpu/uvm/calibrate.cu measures them on a card and writes the YAML that the option `calibration` reads. The
// defaults are those of one H200 where they are known, else from the literature; each says which.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sonde::uvm {

struct PagingParameters {
  // Prefetching, bytes per second. H200, PCIe 5 x16: 2 GiB prefetched and used in 65.7 ms.
  double to_device = 32.7e9;
  double to_host = 32.7e9;
  // From the call to the first byte of a prefetch on an idle stream, ns.
  int64_t prefetch_call_ns = 20'000;

  // Faults. A batch is what the driver takes out of the fault buffer at once; serving it costs batch_ns, and block_ns
  // for each 2 MiB block that it touches, and then bytes / fault_rate. Published costs of a far fault: 20 to 50 us
  // (Zheng et al., HPCA 2016; Allen and Ge, SC 2021).
  int64_t batch_ns = 30'000;
  int64_t block_ns = 12'000;
  double fault_rate = 32.7e9;
  // Bytes that a kernel's threads run ahead of each other: the distance within which faults meet in one batch.
  // One page gives 6 batches a block (see pages_to_migrate), with the values above 6.6 GB/s for streaming; the H200 showed
  // 6.9 GB/s.
  uint64_t window_bytes = 64 << 10;
  // A subtree of a block's pages is brought in whole when more than this share of it is there or faulting. The driver's
  // uvm_perf_prefetch_threshold is 51 %; above 1: no tree prefetcher.
  double tree_threshold = 0.51;
  // Pages that nobody has touched are made on the device, bytes per second, instead of moving them. Own guess.
  double populate_rate = 20e9;

  // Eviction by the driver, for want of room, of one block: fixed cost, then its bytes at `to_host`.
  int64_t evict_ns = 20'000;
  // 1: the driver's list of blocks is ordered by accesses. It is not: it is ordered by migrations, because accesses to
  // pages that are there are not seen (Allen and Ge, SC 2021).
  bool order_by_access = false;

  // The host's own faults on pages that the device has: cost for each block, then bytes per second.
  int64_t host_fault_ns = 30'000;
  double host_fault_rate = 6e9;

  // Accesses of a device over the link to memory that stays on the host, bytes per second.
  double remote_rate = 25e9;

  // How far apart the host's launches are, ns: when a prefetch that waits for nothing is asked for.
  int64_t launch_ns = 3'000;

  std::string source = "defaults, not measured on this card";
};

// Names as in YAML, in order.
std::vector<std::string> parameter_names();

// Sets one by name; false when there is no such name or the value is none that it can have.
bool set_parameter(PagingParameters &parameters, const std::string &name, double value);
double get_parameter(const PagingParameters &parameters, const std::string &name);

// "parameters:\n  to_device: ...\n" with the source as a comment.
std::string parameters_text(const PagingParameters &parameters);

}  // namespace sonde::uvm
