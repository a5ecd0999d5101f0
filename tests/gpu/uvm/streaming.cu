// Streaming over managed memory whose pages lie on the host: pairs of objects, each pair read and written by a number of
// launches, one pair after the other. Prints one JSON line: nanoseconds from the first launch to the final
// synchronisation, what a launch takes with everything resident, and the workload in the words of
// `sonde call uvm simulate`.
//
//   streaming [--variant demand|ahead|all|resident] [--pattern stream|strided|scattered|pingpong]
//             [--pairs 8] [--mib 128] [--launches 20] [--workload FILE]
//
//   demand     the driver's faults bring the pages in
//   ahead      written by hand: one pair ahead, on a second stream
//   all        written by hand: all pairs before the first launch, on a second stream, in the order of use
//   resident   the pages are on the device before the first launch
//
//   stream     a launch reads all of one object and writes all of the other
//   strided    of each object one 64 KiB page in three
//   scattered  of each object every second 2 MiB block, from the end to the begin
//   pingpong   after the launches of a pair the host writes the first object, and the launches come again
#include "managed.h"

constexpr uint64_t kPage = 64 << 10;
constexpr uint64_t kBlock = 2 << 20;

// Pieces of `piece` elements, `stride` elements apart; `backwards`: the last piece first.
__global__ void scale(const float *in, float *out, uint64_t pieces, uint64_t piece, uint64_t stride, float factor,
                      bool backwards) {
  const uint64_t all = pieces * piece;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t index = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; index < all; index += step) {
    const uint64_t number = index / piece;
    const uint64_t at = (backwards ? pieces - 1 - number : number) * stride + index % piece;
    out[at] = in[at] * factor;
  }
}

int main(int argc, char **argv) {
  const std::string variant = option(argc, argv, "--variant", "demand");
  const std::string pattern = option(argc, argv, "--pattern", "stream");
  const int pairs = std::atoi(option(argc, argv, "--pairs", "8"));
  const uint64_t bytes = std::strtoull(option(argc, argv, "--mib", "128"), nullptr, 10) << 20;
  const int launches = std::atoi(option(argc, argv, "--launches", "20"));
  const char *const workload = option(argc, argv, "--workload", nullptr);
  if (pairs < 1 || launches < 1 || bytes < kBlock || 2 * bytes * static_cast<uint64_t>(pairs) > kMostManaged) {
    std::fprintf(stderr, "1 or more pairs and launches, 2 MiB or more each, at most 4 GiB in all\n");
    return 2;
  }

  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  load_kernel(scale);
  cudaStream_t stream, second;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  std::vector<float *> in, out;
  std::vector<cudaEvent_t> arrived(pairs);
  for (int pair = 0; pair < pairs; ++pair) {
    in.push_back(static_cast<float *>(allocate_managed(bytes)));
    out.push_back(static_cast<float *>(allocate_managed(bytes)));
    CHECK(cudaEventCreateWithFlags(&arrived[pair], cudaEventDisableTiming));
  }
  for (int pair = 0; pair < pairs; ++pair) {
    write_by_host(in[pair], bytes);
    write_by_host(out[pair], bytes);
  }

  // In elements.
  uint64_t pieces = 1, piece = bytes / 4, stride = piece;
  bool backwards = false;
  if (pattern == "strided") {
    piece = kPage / 4;
    stride = 3 * piece;
    pieces = bytes / (3 * kPage);
  } else if (pattern == "scattered") {
    piece = kBlock / 4;
    stride = 2 * piece;
    pieces = bytes / (2 * kBlock);
    backwards = true;
  } else if (pattern != "stream" && pattern != "pingpong") {
    std::fprintf(stderr, "unknown pattern %s\n", pattern.c_str());
    return 2;
  }
  const int rounds = pattern == "pingpong" ? 2 : 1;
  const auto blocks = static_cast<unsigned>(std::min<uint64_t>((pieces * piece + 255) / 256, 1u << 30));
  const auto launch = [&](int pair) {
    scale<<<blocks, 256, 0, stream>>>(in[pair], out[pair], pieces, piece, stride, 1.5f, backwards);
  };
  const auto fetch = [&](int pair) {
    prefetch(in[pair], bytes, 0, second);
    prefetch(out[pair], bytes, 0, second);
    CHECK(cudaEventRecord(arrived[pair], second));
  };
  if (variant == "resident") {
    for (int pair = 0; pair < pairs; ++pair) fetch(pair);
  }
  CHECK(cudaDeviceSynchronize());

  const bool is_ahead = variant == "ahead";
  const int64_t begin = now_ns();
  if (variant == "all") {
    for (int pair = 0; pair < pairs; ++pair) fetch(pair);
  }
  if (is_ahead) fetch(0);
  for (int pair = 0; pair < pairs; ++pair) {
    if (is_ahead && pair + 1 < pairs) fetch(pair + 1);
    if (is_ahead || variant == "all") CHECK(cudaStreamWaitEvent(stream, arrived[pair], 0));
    for (int round = 0; round < rounds; ++round) {
      for (int index = 0; index < launches; ++index) launch(pair);
      if (rounds == 1 || round + 1 == rounds) continue;
      CHECK(cudaStreamSynchronize(stream));
      write_by_host(in[pair], bytes, 2);
    }
  }
  CHECK(cudaDeviceSynchronize());
  const int64_t total = now_ns() - begin;
  CHECK(cudaGetLastError());

  // What a launch takes when everything is there; after the measured part, and by events.
  double resident_ns = 0;
  if (const char *const sonde = std::getenv("SONDE_RUN"); sonde == nullptr) {
    prefetch(in[0], bytes, 0, stream);
    prefetch(out[0], bytes, 0, stream);
    cudaEvent_t first, last;
    CHECK(cudaEventCreate(&first));
    CHECK(cudaEventCreate(&last));
    launch(0);
    CHECK(cudaEventRecord(first, stream));
    for (int index = 0; index < 10; ++index) launch(0);
    CHECK(cudaEventRecord(last, stream));
    CHECK(cudaEventSynchronize(last));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, first, last));
    resident_ns = milliseconds * 1e6 / 10;
  }

  if (workload != nullptr) {
    FILE *const file = std::fopen(workload, "w");
    if (file == nullptr) {
      std::perror(workload);
      return 3;
    }
    std::fprintf(file, "allocations:\n");
    const char *const home = variant == "resident" ? "device" : "host";
    for (int index = 0; index < 2 * pairs; ++index) {
      std::fprintf(file, "  - {bytes: %llu, home: %s}\n", static_cast<unsigned long long>(bytes), home);
    }
    std::fprintf(file, "steps:\n");
    for (int pair = 0; pair < pairs; ++pair) {
      const auto touch = [&](int allocation, bool writes) {
        std::fprintf(file, "{allocation: %d, bytes: %llu, stride: %llu, count: %llu, write: %s}", allocation,
                     static_cast<unsigned long long>(piece * 4), static_cast<unsigned long long>(stride * 4),
                     static_cast<unsigned long long>(pieces), writes ? "true" : "false");
      };
      const auto moves = [&](int which) {
        for (int object = 0; object < 2; ++object) {
          std::fprintf(file, "%s{prefetch: %d, needed: %d}", object == 0 ? "" : ", ", 2 * which + object,
                       which * rounds * launches);
        }
      };
      for (int round = 0; round < rounds; ++round) {
        std::fprintf(file, "  - repeat: %d\n    duration_ns: %.0f\n    touches: [", launches, resident_ns);
        touch(2 * pair, false);
        std::fprintf(file, ", ");
        touch(2 * pair + 1, true);
        std::fprintf(file, "]\n");
        if (round == 0 && (is_ahead || (variant == "all" && pair == 0))) {
          std::fprintf(file, "    moves: [");
          for (int which = pair; which < pairs; ++which) {
            const bool now = variant == "all" || which == pair + 1 || (pair == 0 && which == 0);
            if (!now) continue;
            if (which != pair && !(is_ahead && pair != 0)) std::fprintf(file, ", ");
            moves(which);
          }
          std::fprintf(file, "]\n");
        }
        if (rounds > 1 && round + 1 < rounds) {
          std::fprintf(file, "  - host: true\n    touches: [{allocation: %d, bytes: %llu, write: true}]\n", 2 * pair,
                       static_cast<unsigned long long>(bytes));
        }
      }
    }
    std::fclose(file);
  }
  std::printf(
      "{\"program\": \"streaming\", \"variant\": \"%s\", \"pattern\": \"%s\", \"pairs\": %d, \"bytes\": %llu, "
      "\"launches\": %d, \"total_ns\": %lld, \"resident_launch_ns\": %.0f}\n",
      variant.c_str(), pattern.c_str(), pairs, static_cast<unsigned long long>(bytes), launches,
      static_cast<long long>(total), resident_ns);
  return 0;
}
