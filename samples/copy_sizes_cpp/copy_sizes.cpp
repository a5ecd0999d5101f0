// The analysis of ../copy_sizes_c in C++: how large the copies of a run are, by direction, in powers of two.
#include <sonde/plugin.h>
#include <sonde/sonde.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <utility>

namespace {

constexpr const char *kOrigin = "copy_sizes_cpp";
constexpr std::array kDirections = {"unknown",        "host_to_device",  "device_to_host", "device_to_device",
                                    "host_to_host",   "peer_to_peer",    "host_to_array",  "array_to_host",
                                    "array_to_array", "array_to_device", "device_to_array"};

// Bucket 0 holds copies of 0 bytes, bucket b > 0 those of [2^(b-1), 2^b) bytes.
struct Bucket {
  uint64_t copies = 0;
  uint64_t bytes = 0;
};

class CopySizes {
 public:
  CopySizes(sonde::Session session, sonde::Config options)
      : session_(std::move(session)),
        threshold_bytes_(static_cast<uint64_t>(options.i64("threshold_bytes"))),
        share_(options.f64("share")) {}

  void start() {
    subscription_ = session_.subscribe(
        kOrigin, {sonde::only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_COPY})}, [this](const sonde::Batch &batch) {
          batch.for_each<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY,
                                              [this](const sonde_device_copy_t &copy) { add(copy); });
        });
  }

  void finish() {
    subscription_.reset();
    publish_table();
    publish_finding();
  }

  uint64_t copies() const { return copies_; }

 private:
  void add(const sonde_device_copy_t &copy) {
    Bucket &bucket = buckets_[copy.kind < kDirections.size() ? copy.kind : 0][std::bit_width(copy.bytes)];
    ++bucket.copies;
    bucket.bytes += copy.bytes;
    tiny_ += copy.bytes < threshold_bytes_ ? 1 : 0;
    ++copies_;
  }

  void publish_table() {
    sonde::Table table(session_.host(), session_.get(), kOrigin, "sizes", "Copy sizes",
                       "Copies by direction and size, in powers of two.");
    table.text("direction", "what lies at the two ends of the copy", SONDE_COLUMN_KEY)
        .u64("from", "bytes", "least size of the bucket", SONDE_COLUMN_KEY)
        .u64("to", "bytes", "greatest size of the bucket")
        .u64("copies", "1", "copies of such a size")
        .u64("bytes", "bytes", "sum of their sizes")
        .create();
    for (size_t direction = 0; direction < kDirections.size(); ++direction) {
      for (size_t bucket = 0; bucket < buckets_[direction].size(); ++bucket) {
        const Bucket &content = buckets_[direction][bucket];
        if (content.copies == 0) continue;
        const uint64_t from = bucket == 0 ? 0 : uint64_t{1} << (bucket - 1);
        const uint64_t to = bucket == 0 ? 0 : from * 2 - 1;
        table.row({kDirections[direction], from, to, content.copies, content.bytes});
      }
    }
  }

  void publish_finding() {
    sonde::Finding finding(kOrigin, "copy_sizes.tiny");
    finding.formula("copies below threshold_bytes / copies > share");
    const uint64_t copies = copies_;
    const double part = copies == 0 ? 0 : static_cast<double>(tiny_) / static_cast<double>(copies);
    if (copies == 0) {
      finding.unsupported("Copy sizes were not judged.", "the capture holds no copy");
    } else if (part > share_) {
      finding
          .violation(SONDE_SEVERITY_WARNING,
                     "Most copies are so small that starting them costs more than moving their bytes.")
          .advice("Gather small values into one buffer and copy that.");
    } else {
      finding.ok("Copies are not mostly tiny.");
    }
    if (copies != 0) {
      finding.evidence("tiny_copies", "1", tiny_)
          .evidence("copies", "1", copies)
          .evidence("tiny_share", "1", part)
          .evidence("threshold", "bytes", threshold_bytes_);
    }
    finding.publish(session_.host(), session_.get());
  }

  sonde::Session session_;
  uint64_t threshold_bytes_;
  double share_;
  std::array<std::array<Bucket, 65>, kDirections.size()> buckets_{};
  uint64_t tiny_ = 0;
  std::atomic<uint64_t> copies_{0};   // exports read it while the subscription's thread counts
  sonde::Subscription subscription_;  // last: it ends before what its handler uses
};

using Plugin = sonde::AnalysisPlugin<CopySizes>;

sonde_status copy_count(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const CopySizes &analysis) { *out = analysis.copies(); });
}

const sonde_export_t exports[] = {
    SONDE_EXPORT(copy_count, status, (session, out_u64), "copies seen so far"),
};

const sonde_option_t options[] = {
    {"threshold_bytes", "4096", "a copy with fewer bytes is tiny", "bytes", "1..1099511627776", SONDE_OPTION_I64, 0},
    {"share", "0.5", "part of the copies that must be tiny to be reported", "1", "0..1", SONDE_OPTION_F64, 0},
};

}  // namespace

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = kOrigin,
    .version = "1.0.0",
    .summary = "sizes of copies by direction (sample in C++)",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = std::size(exports),
    .export_stride = sizeof(sonde_export_t),
    .options = options,
    .option_count = std::size(options),
    .option_stride = sizeof(sonde_option_t),
    .init = &Plugin::init,
    .shutdown = nullptr,
    .get_interface = &Plugin::get_interface,
};
