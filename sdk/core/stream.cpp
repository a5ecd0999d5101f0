#include "core/stream.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace sonde::core {
namespace {

// The thread looks at the fill level this often in a ring's length, and wakes the delivery thread at half.
constexpr uint64_t kLooksInRing = 8;

uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Overwrite policy: moves the tail past whole records until `needed` bytes are free. Records that a flush delivered
// already are not lost.
void make_room(Stream &stream, uint64_t head, uint64_t needed) {
  const OverwriteLock lock(stream);
  uint64_t tail = stream.tail.load(std::memory_order_relaxed);
  const uint64_t delivered = read_counter(stream.row->delivered);
  uint64_t lost = 0;
  while (stream.ring.bytes() - (head - tail) < needed) {
    if (tail >= delivered) ++lost;
    tail += SONDE_RECORD_BYTES(reinterpret_cast<const sonde_record_t *>(stream.ring.at(tail)));
  }
  stream.tail.store(tail, std::memory_order_relaxed);
  if (lost != 0) add_to_counter(stream.row->lost_overwritten, lost);
}

}  // namespace

Ring::~Ring() {
  if (base_ != nullptr && process_ == ::getpid()) ::munmap(base_, 2 * bytes_);
}

bool Ring::map(uint64_t bytes) {
  // Growing a file past this limit would send SIGXFSZ to the program that is measured.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) return false;
  const int file = ::memfd_create("sonde-ring", MFD_CLOEXEC);
  if (file < 0) return false;
  bool mapped = ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
  if (mapped) {
    void *const place = ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped = place != MAP_FAILED;
    if (mapped) {
      auto *const base = static_cast<uint8_t *>(place);
      for (int half = 0; half < 2; ++half) {
        mapped = mapped && ::mmap(base + static_cast<uint64_t>(half) * bytes, bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
      }
      if (mapped) {
        ::madvise(base, 2 * bytes, MADV_DONTFORK);
        base_ = base;
        bytes_ = bytes;
        process_ = ::getpid();
      } else {
        ::munmap(place, 2 * bytes);
      }
    }
  }
  ::close(file);
  return mapped;
}

OverwriteLock::OverwriteLock(Stream &stream) : stream_(stream) {
  while (stream_.overwrite_lock.exchange(true, std::memory_order_acquire)) ::sched_yield();
}

void *reserve_slowly(Stream &stream, sonde_writer_t &writer, uint32_t bytes) {
  if (!stream.accepts.load(std::memory_order_acquire)) return nullptr;
  const uint64_t size = stream.ring.bytes();
  if (bytes > size / 2) {
    add_to_counter(stream.row->lost_big, 1);
    return nullptr;
  }
  const uint64_t head = writer.position;
  const uint64_t look = std::max<uint64_t>(size / kLooksInRing, bytes);
  uint64_t free = size - (head - stream.tail.load(std::memory_order_acquire));
  if (stream.policy == SONDE_POLICY_OVERWRITE) {
    if (free < look) {
      make_room(stream, head, look);
      free = look;
    }
  } else {
    if (free <= size / 2) wake_waiter(*stream.wake_word);
    if (free < bytes && stream.policy == SONDE_POLICY_STALL) {
      const uint64_t deadline = monotonic_ns() + stream.stall_ns;
      do {
        wake_waiter(*stream.wake_word);
        const timespec nap{0, 20'000};
        ::nanosleep(&nap, nullptr);
        free = size - (head - stream.tail.load(std::memory_order_acquire));
      } while (free < bytes && monotonic_ns() < deadline && stream.accepts.load(std::memory_order_acquire));
    }
    if (free < bytes) {
      add_to_counter(stream.row->lost_full, 1);
      return nullptr;
    }
  }
  writer.cursor = stream.ring.at(head);
  writer.limit = writer.cursor + std::min(free, look);
  return writer.cursor;
}

void wake_waiter(std::atomic<uint32_t> &word) {
  // A word that is already raised has a wake on its way: at most one system call for each sleep.
  if (word.exchange(1, std::memory_order_acq_rel) == 0) {
    ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

void wait_for_wake(std::atomic<uint32_t> &word, uint32_t seen, uint64_t nanoseconds) {
  const timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000),
                       static_cast<long>(nanoseconds % 1'000'000'000)};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
}

}  // namespace sonde::core
