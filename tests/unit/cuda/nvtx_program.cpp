// A program that carries the real, header-only NVTX. nvtx_injection.cpp makes it its own injection library, so that
// the calls below reach the port through NVTX's own loader.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvtx3.hpp>

#include <cstdio>
#include <thread>

#include <sonde/spaces/framework.h>
#include <sonde/spaces/object.h>

#include "common/services.h"
#include "fake_host.h"
#include "port.h"

namespace {

int failures = 0;

void expect(bool good, const char *what) {
  if (good) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

struct library {
  static constexpr char const *name{"library"};
};

}  // namespace

int main() {
  using namespace sonde;
  cuda::services() = {test::fake_host(), test::fake_capture(), nullptr};
  sonde_session_t session;
  session.want_all(SONDE_SPACE_FRAMEWORK);
  session.want_all(SONDE_SPACE_OBJECT);
  cuda::PortOptions options;
  options.collector.cupti = "/nonexistent";
  cuda::Port port(&session, options);
  if (port.start() != SONDE_OK) return 1;

  expect(nvtxRangePushA("outer") == 0, "depth of the first push");
  expect(nvtxRangePushW(L"inner") == 1, "depth of the second push");
  expect(nvtxRangePop() == 1, "depth of the first pop");
  expect(nvtxRangePop() == 0, "depth of the second pop");
  nvtxMarkA("mark");
  const nvtxRangeId_t id = nvtxRangeStartA("range");
  std::thread([id] { nvtxRangeEnd(id); }).join();
  nvtxDomainHandle_t domain = nvtxDomainCreateA("torch");
  nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = string;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = -3;
  expect(nvtxDomainRangePushEx(domain, &attributes) == 0, "depth in a domain");
  expect(nvtxDomainRangePop(domain) == 0, "depth in a domain");
  nvtxNameOsThreadA(77, "worker");
  { nvtx3::scoped_range_in<library> scoped{"c++"}; }
  if (port.stop() != SONDE_OK) return 1;

  const auto pushes = session.emitted_of<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH);
  const auto pops = session.emitted_of<sonde_framework_scope_end_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP);
  expect(pushes.size() == 4 && pops.size() == 4, "four pushes and four pops");
  if (pushes.size() == 4) {
    expect(test::text_of(pushes[0].name) == "outer", "name of a push");
    expect(test::text_of(pushes[1].name) == "inner", "name of a wide push");
    expect(test::text_of(pushes[2].name) == "registered", "registered name");
    expect(test::text_of(pushes[2].domain) == "nvtx:torch", "domain");
    expect(static_cast<int64_t>(pushes[2].payload) == -3 && pushes[2].payload_kind == 2, "payload");
    expect(test::text_of(pushes[3].domain) == "nvtx:library", "domain of nvtx3");
    expect(test::text_of(pushes[3].name) == "c++", "name of nvtx3");
  }
  expect(session.emitted_of<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_MARK).size() == 1, "mark");
  const auto starts = session.emitted_of<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_RANGE_START);
  const auto ends = session.emitted_of<sonde_framework_scope_end_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_RANGE_END);
  expect(starts.size() == 1 && ends.size() == 1, "one range");
  if (!starts.empty() && !ends.empty()) expect(starts[0].scope == ends[0].scope, "id of a range");
  const auto names = session.emitted_of<sonde_object_name_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_NAME);
  expect(names.size() == 1 && names[0].object == 77, "name of a thread");
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
