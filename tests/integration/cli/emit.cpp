// Makes the events that test_cli.py expects.
//
//   emit DIR           records into the run directory DIR
//   emit               emits into the session that `sonde run` or `sonde record` started in this process
//     --exit N         ends with that status
//     --kill SIGNAL    ends by that signal
//     --stay           emits, says "ready", and emits a kernel each millisecond until SIGTERM; then ends with 7
#include <unistd.h>
#include <sonde/sonde.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

volatile std::sig_atomic_t asked_to_end = 0;

// Names that have broken exports: a quote, empty operator names, a control byte, a character beyond ASCII, a
// backslash, a byte that is not UTF-8, and a symbol of 30,000 bytes.
std::vector<std::string> kernel_names() {
  return {R"({"device": "cpu"}(12): run)",
          R"(operator"" _km)",
          "a\x01z",
          "3 \u00D7 4",
          R"(C:\kernel)",
          "kernel\x9f",
          "_Z30000" + std::string(30000, 'k') + "v"};
}

constexpr uint64_t kAddress = 0xffff800012345678;
constexpr uint64_t kCorrelation = (uint64_t{1} << 53) + 1;

class Emitter {
 public:
  explicit Emitter(sonde::Session session) : session_(std::move(session)), writer_(session_.writer()) {}

  void everything() {
    uint64_t now = sonde_stamp();
    for (const std::string &name : kernel_names()) {
      kernel(name, now, now + 1000);
      now += 2000;
    }
    kernel("reversed", now, now - 500);
    kernel("zero", now, 0);
    copy(now, now + 100);
    memory(now);
    scopes();
    call(now);
    const auto &capture = session_.host().service<sonde_capture_service_t>();
    session_.host().check(capture.note(session_.get(), 3, "emit", "the test has no device"));
  }

  void kernel(const std::string &name, uint64_t begin, uint64_t end) {
    sonde_device_kernel_t record{};
    record.end = end;
    record.correlation = kCorrelation;
    record.stream = 7;
    record.name = session_.intern(name);
    record.grid[0] = 4;
    emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, record, begin);
  }

 private:
  template <typename Record>
  void emit(uint32_t space, uint32_t type, Record &record, uint64_t stamp) {
    if (!writer_.emit(space, type, record, stamp)) throw std::runtime_error("a record was dropped");
  }

  void copy(uint64_t begin, uint64_t end) {
    sonde_device_copy_t record{};
    record.end = end;
    record.bytes = 4096;
    record.kind = SONDE_COPY_HOST_TO_DEVICE;
    record.flags = 1;
    emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, record, begin);
  }

  // Two allocations, of which one is freed, and a free of something else.
  void memory(uint64_t now) {
    sonde_memory_allocate_t allocate{};
    allocate.address = kAddress;
    allocate.bytes = 1024;
    allocate.kind = SONDE_MEMORY_DEVICE;
    emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, allocate, now);
    sonde_memory_free_t release{};
    release.address = kAddress;
    emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, release, now + 10);
    allocate.address = kAddress + 4096;
    emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, allocate, now + 20);
    release.address = kAddress + 8192;
    emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, release, now + 30);
  }

  // One whole scope, one that stays open, and a pop in a domain without a push.
  void scopes() {
    sonde_framework_scope_t push{};
    push.name = session_.intern("step");
    sonde_framework_scope_end_t pop{};
    emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, push, sonde_stamp());
    emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP, pop, sonde_stamp());
    emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, push, sonde_stamp());
    pop.domain = session_.intern("other");
    emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP, pop, sonde_stamp());
  }

  // A call that had not returned.
  void call(uint64_t now) {
    sonde_host_call_begin_t begin{};
    begin.correlation = 5;
    begin.function = session_.intern("launch");
    emit(SONDE_SPACE_HOST, SONDE_HOST_CALL_BEGIN, begin, now);
  }

  sonde::Session session_;
  sonde::Writer writer_;
};

void emit_until_asked(Emitter &emitter) {
  std::signal(SIGTERM, [](int) { asked_to_end = 1; });
  std::puts("ready");
  std::fflush(stdout);
  while (asked_to_end == 0) {
    const uint64_t now = sonde_stamp();
    emitter.kernel("stay", now, now + 100);
    usleep(1000);
  }
}

int run(int argc, char **argv) {
  std::string directory;
  int code = 0;
  int signal = 0;
  bool stays = false;
  for (int index = 1; index < argc; ++index) {
    const std::string word = argv[index];
    if (word == "--exit" && index + 1 < argc) {
      code = std::atoi(argv[++index]);
    } else if (word == "--kill" && index + 1 < argc) {
      signal = std::atoi(argv[++index]);
    } else if (word == "--stay") {
      stays = true;
    } else {
      directory = word;
    }
  }
  const sonde::Host host(sonde_host());
  const auto &runs = host.service<sonde_run_service_t>();
  sonde_run_t *own_run = nullptr;
  sonde_session_t *session = nullptr;
  if (directory.empty()) {
    host.check(host.service<sonde_session_service_t>().current(&session));
  } else {
    const auto &configs = host.service<sonde_config_service_t>();
    // The deadline is long: a machine that runs many tests at once may be slow.
    const std::string yaml = "session: {deadline: 60s}\nrecord: {path: \"" + directory + "\"}\n";
    sonde_config_t *config = nullptr;
    host.check(configs.parse(yaml.c_str(), "emit", &config));
    host.check(runs.open(config, &own_run));
    host.check(configs.release(config));
    host.check(runs.start(own_run));
    host.check(runs.session(own_run, &session));
  }
  Emitter emitter(sonde::Session::borrow(host, session));
  emitter.everything();
  if (stays) {
    emit_until_asked(emitter);
    code = 7;
  }
  if (signal != 0) {
    // What was emitted should be on disk, so that the test knows what to expect.
    host.check(host.service<sonde_session_service_t>().flush(session, 0));
    usleep(500'000);
    std::raise(signal);
  }
  if (own_run != nullptr) {
    host.check(runs.finish(own_run));
    host.check(runs.close(own_run));
  }
  return code;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "emit: %s\n", exception.what());
    return 99;
  }
}
