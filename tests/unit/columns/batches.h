// Batches made by hand, and the service under test.
#pragma once

#include <sonde/columns.h>
#include <sonde/schema.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/error.h"
#include "core/services.h"

namespace sonde::test {

inline const sonde_columns_service_t &columns() {
  core::install();
  return service<sonde_columns_service_t>(SONDE_COLUMNS_SERVICE);
}

// Records in a row, with the repairs that the core finds for them. The view points into the object.
class Records {
 public:
  explicit Records(uint64_t multiplier = 1, uint32_t shift = 0) {
    clock_.struct_size = sizeof(clock_);
    clock_.base_raw = 1000;
    clock_.base_ns = 5'000'000;
    clock_.multiplier = multiplier;
    clock_.shift = shift;
    view_.struct_size = sizeof(view_);
    view_.stream = 7;
    view_.source = 3;
  }

  template <typename Record>
  void add(const Record &record, uint32_t bytes = sizeof(Record)) {
    const auto *const data = reinterpret_cast<const uint8_t *>(&record);
    data_.insert(data_.end(), data, data + bytes);
    ++view_.count;
  }

  void add_raw(const std::vector<uint64_t> &words) {
    const auto *const data = reinterpret_cast<const uint8_t *>(words.data());
    data_.insert(data_.end(), data, data + words.size() * 8);
    ++view_.count;
  }

  sonde_batch_t &batch() {
    repairs_ = core::find_repairs(data_.data(), data_.size(), clock_);
    view_.data = data_.data();
    view_.bytes = data_.size();
    view_.clock = &clock_;
    view_.repairs = repairs_.data();
    view_.repair_count = repairs_.size();
    return view_;
  }

 private:
  std::vector<uint8_t> data_;
  std::vector<sonde_repair_t> repairs_;
  sonde_clock_t clock_ = {};
  sonde_batch_t view_ = {};
};

inline sonde_device_kernel_t kernel(uint64_t begin, uint64_t end, uint32_t name = 1, uint64_t stream = 0) {
  sonde_device_kernel_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin);
  record.end = end;
  record.name = name;
  record.stream = stream;
  return record;
}

inline sonde_device_copy_t copy(uint64_t begin, uint64_t end, uint64_t bytes, uint32_t kind = 1) {
  sonde_device_copy_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, begin);
  record.end = end;
  record.bytes = bytes;
  record.kind = kind;
  return record;
}

inline sonde_column_t column(const char *type, const char *field, const char *space = "sonde.device") {
  sonde_column_t out = {};
  out.struct_size = sizeof(out);
  if (columns().find(space, type, field, &out) < 0) out.struct_size = 0;
  return out;
}

inline sonde_reduction_t empty_reduction() {
  sonde_reduction_t reduction = {};
  reduction.struct_size = sizeof(reduction);
  return reduction;
}

}  // namespace sonde::test
