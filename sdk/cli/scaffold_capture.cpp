#include "cli/scaffold_capture.h"

namespace sonde::cli {

void write_scaffold_capture(const Host &host, const std::string &path) {
  const auto &store = host.service<sonde_store_service_t>();
  Session session = Session::open(host);
  sonde_recording_t *recording = nullptr;
  host.check(store.record(session.get(), path.c_str(), nullptr, nullptr, &recording));
  session.start();
  uint64_t now = sonde_stamp();
  for (const char *name : {"add", "multiply", "add"}) {
    sonde_device_kernel_t kernel{};
    kernel.name = session.intern(name);
    kernel.end = now + 1000;
    session.writer().emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, kernel, now);
    now += 2000;
  }
  session.stop();
  host.check(store.finish(recording));
}

}  // namespace sonde::cli
