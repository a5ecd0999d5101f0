// A program that embeds Sonde, in C++: it says what it does, counts its own kernels as they arrive, and reads the table
// that the analysis `workload` makes of them.
#include <sonde/sonde.hpp>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

// One run from a configuration, freed at the end.
class Run {
 public:
  Run(const sonde::Host &host, const std::string &yaml) : host_(host), service_(host.service<sonde_run_service_t>()) {
    const auto &configs = host.service<sonde_config_service_t>();
    sonde_config_t *config = nullptr;
    host.check(configs.parse(yaml.c_str(), "host_cpp", &config));
    const sonde_status status = service_.open(config, &run_);
    const std::string problem = status == SONDE_OK ? "" : host.table()->last_error();
    configs.release(config);
    if (status != SONDE_OK) throw sonde::Failure(status, problem);
  }
  ~Run() { service_.close(run_); }
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  void start() { host_.check(service_.start(run_)); }
  void finish() { host_.check(service_.finish(run_)); }
  sonde::Session session() const {
    sonde_session_t *session = nullptr;
    host_.check(service_.session(run_, &session));
    return sonde::Session::borrow(host_, session);
  }

 private:
  sonde::Host host_;
  const sonde_run_service_t &service_;
  sonde_run_t *run_ = nullptr;
};

// A scope that lasts as long as the object.
class Scope {
 public:
  Scope(sonde::Session &session, const std::string &name) : session_(session) {
    sonde_framework_scope_t scope{};
    scope.name = session.intern(name);
    session.writer().emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, scope);
  }
  ~Scope() {
    sonde_framework_scope_end_t end{};
    session_.writer().emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP, end);
  }
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

 private:
  sonde::Session &session_;
};

// A buffer whose life is captured.
class Buffer {
 public:
  Buffer(sonde::Session &session, const std::string &name, size_t count) : session_(session), values_(count, 1.0f) {
    sonde_memory_allocate_t record{};
    record.address = reinterpret_cast<uint64_t>(values_.data());
    record.bytes = count * sizeof(float);
    record.kind = SONDE_MEMORY_PAGEABLE;
    record.name = session.intern(name);
    session.writer().emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, record);
  }
  ~Buffer() {
    sonde_memory_free_t record{};
    record.address = reinterpret_cast<uint64_t>(values_.data());
    record.kind = SONDE_MEMORY_PAGEABLE;
    session_.writer().emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, record);
  }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  std::vector<float> &values() { return values_; }

 private:
  sonde::Session &session_;
  std::vector<float> values_;
};

// A piece of work, shown like a kernel.
template <typename Body>
void kernel(sonde::Session &session, const std::string &name, Body &&body) {
  sonde_device_kernel_t record{};
  const uint64_t begin = sonde_stamp();
  body();
  record.end = sonde_stamp();
  record.name = session.intern(name);
  record.stream = 1;
  session.writer().emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, record, begin);
}

constexpr int kSteps = 10;

void work(sonde::Session &session) {
  const Scope scope(session, "work");
  Buffer x(session, "x", 1 << 16);
  for (int step = 0; step < kSteps; ++step) {
    kernel(session, "scale", [&] {
      for (float &value : x.values()) value *= 1.5f;
    });
    kernel(session, "shift", [&] {
      for (float &value : x.values()) value += 1.0f;
    });
  }
}

// The column of that name; throws when the table has none.
uint32_t column(const sonde_table_spec_t &spec, const std::string &name) {
  for (uint32_t index = 0; index < spec.column_count; ++index) {
    if (name == spec.columns[index].name) return index;
  }
  throw std::runtime_error("no column " + name);
}

// Prints the table of kernels; how many launches it counts.
uint64_t print_kernels(const sonde::Host &host, const sonde::Session &session) {
  const auto &results = host.service<sonde_result_service_t>();
  sonde_table_t *table = nullptr;
  const sonde_table_spec_t *spec = nullptr;
  uint64_t rows = 0;
  host.check(results.find_table(session.get(), "workload", "kernels", &table));
  host.check(results.table_spec(table, &spec));
  host.check(results.row_count(table, &rows));
  uint64_t launches = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    sonde_value_t name{};
    sonde_value_t count{};
    host.check(results.cell(table, row, column(*spec, "kernel"), &name));
    host.check(results.cell(table, row, column(*spec, "count"), &count));
    std::printf("%-10s %llu launches\n", name.as.text, static_cast<unsigned long long>(count.as.u64));
    launches += count.as.u64;
  }
  return launches;
}

int run() {
  const sonde::Host host(sonde_host());
  Run run(host, "analyses: {workload: {}}\n");
  sonde::Session session = run.session();

  std::atomic<uint64_t> seen{0};
  sonde::Subscription counter = session.subscribe(
      "counter", {sonde::only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_KERNEL})}, [&](const sonde::Batch &batch) {
        batch.for_each<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL,
                                              [&](const sonde_device_kernel_t &) { ++seen; });
      });
  run.start();
  work(session);
  run.finish();
  counter.reset();

  const uint64_t launches = print_kernels(host, session);
  std::printf("%llu kernels arrived, %llu are in the table, %zu rows of losses\n",
              static_cast<unsigned long long>(seen.load()), static_cast<unsigned long long>(launches),
              session.losses().size());
  return seen == 2 * kSteps && launches == 2 * kSteps ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}
