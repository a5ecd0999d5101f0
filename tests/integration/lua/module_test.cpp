// The module in the stock interpreter: a capture is made here, module_test.lua reads it there.
#include <gtest/gtest.h>
#include <sonde/sonde.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "script_run.h"

namespace sonde::test {
namespace {

namespace fs = std::filesystem;

// 1000 kernels of two names and 100 copies.
void record_capture(const std::string &path) {
  const auto &sessions = get<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  const auto &store = get<sonde_store_service_t>(SONDE_STORE_SERVICE);
  const auto &capture = get<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  sonde_session_t *session = nullptr;
  sonde_recording_t *recording = nullptr;
  ASSERT_EQ(sessions.open(nullptr, &session), SONDE_OK);
  ASSERT_EQ(store.record(session, path.c_str(), nullptr, nullptr, &recording), SONDE_OK) << sonde_host()->last_error();
  ASSERT_EQ(sessions.start(session), SONDE_OK);
  sonde_string_t names[2] = {};
  capture.intern("gemm", UINT64_MAX, &names[0]);
  capture.intern("softmax", UINT64_MAX, &names[1]);
  for (uint64_t index = 0; index < 1000; ++index) {
    sonde_device_kernel_t kernel = {};
    SONDE_RECORD_INIT(&kernel, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, sonde_stamp());
    kernel.end = kernel.header.time + 1000;
    kernel.name = names[index % 4 == 0];
    kernel.grid[0] = static_cast<uint32_t>(index);
    ASSERT_EQ(capture.emit(session, &kernel.header), SONDE_OK);
    if (index % 10 == 0) {
      sonde_device_copy_t copy = {};
      SONDE_RECORD_INIT(&copy, SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, sonde_stamp());
      copy.end = copy.header.time + 10;
      copy.bytes = index;
      copy.kind = SONDE_COPY_HOST_TO_DEVICE;
      ASSERT_EQ(capture.emit(session, &copy.header), SONDE_OK);
    }
    if (index % 100 == 0) {
      ASSERT_EQ(sessions.flush(session, 0), SONDE_OK);
    }
  }
  ASSERT_EQ(sessions.stop(session, 0), SONDE_OK);
  ASSERT_EQ(store.finish(recording), SONDE_OK);
  ASSERT_EQ(sessions.close(session), SONDE_OK);
}

TEST(LuaModule, ReadsACaptureInTheStockInterpreter) {
  std::string folder = (fs::temp_directory_path() / "sonde_lua_module_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  record_capture(folder + "/capture.sonde");
  const std::string command = "cd " + folder + " && LUA_CPATH='" + TEST_LUA_MODULE_FOLDER +
                              "/?.so' SONDE_PLUGIN_PATH=" + fs::path(TEST_LUA_PLUGIN).parent_path().string() +
                              " lua5.4 " + TEST_SOURCE_FOLDER + "/module_test.lua capture.sonde 2>log";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << "\n"
                                                             << std::system(("cat " + folder + "/log >&2").c_str());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sonde::test
