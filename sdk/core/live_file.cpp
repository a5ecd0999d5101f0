#include "core/live_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sonde::core {
namespace {

constexpr size_t kFileBytes = sizeof(LiveHeader) + LiveFile::kRows * sizeof(LiveStream);

}  // namespace

Result<std::shared_ptr<LiveFile>> LiveFile::create(const std::string &path) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kFileBytes) {
    return Error{SONDE_E_IO,
                 "cannot make " + path + ": the limit on file sizes is " + std::to_string(limit.rlim_cur) + " bytes"};
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return Error{SONDE_E_IO, "cannot make " + path + ": " + std::strerror(errno)};
  // Reserved, not only sized: a store into a hole of a full disk would be a SIGBUS.
  int failure = ::posix_fallocate(file, 0, static_cast<off_t>(kFileBytes));
  void *memory = MAP_FAILED;
  if (failure == 0) {
    memory = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) failure = errno;
  }
  ::close(file);
  if (failure != 0) {
    ::unlink(path.c_str());
    return Error{SONDE_E_IO, "cannot map " + path + ": " + std::strerror(failure)};
  }
  ::madvise(memory, kFileBytes, MADV_DONTFORK);
  std::shared_ptr<LiveFile> live(new LiveFile);
  live->process_ = ::getpid();
  live->header_ = static_cast<LiveHeader *>(memory);
  live->rows_ = reinterpret_cast<LiveStream *>(live->header_ + 1);
  live->header_->version = kLiveVersion;
  live->header_->capacity = kRows;
  live->header_->process = static_cast<uint64_t>(::getpid());
  live->header_->magic = kLiveMagic;
  return live;
}

LiveFile::~LiveFile() {
  // In a forked child the mapping does not exist, and something else may lie at its address.
  if (process_ == ::getpid()) ::munmap(header_, kFileBytes);
}

LiveStream *LiveFile::add_row(uint64_t stream) {
  const std::lock_guard lock(mutex_);
  if (header_->used >= kRows) {
    header_->overflow = 1;
    return nullptr;
  }
  LiveStream *const row = &rows_[header_->used++];
  row->stream = stream;
  return row;
}

}  // namespace sonde::core
