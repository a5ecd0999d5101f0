// The port `cuda_sampling` where CUPTI is absent or too old. One process each, because CUPTI is opened once.
#include <gtest/gtest.h>

#include <sonde/spaces/sample.h>

#include "driving.h"

namespace sonde::test {
namespace {

std::string notes_with(const std::string &cupti) {
  sonde_session_t session;
  session.want_all(SONDE_SPACE_SAMPLE);
  sonde_config_t config;
  config.values["cupti"] = cupti;
  void *instance = nullptr;
  EXPECT_EQ(port()->create(&session, &config, &instance), SONDE_OK);
  EXPECT_EQ(port()->start(instance), SONDE_OK);
  EXPECT_EQ(port()->stop(instance), SONDE_OK);
  port()->destroy(instance);
  return session.all_notes();
}

TEST(SamplingAbsent, TheReasonNamesWhereCuptiWasLookedFor) {
  EXPECT_EXIT(
      {
        const std::string notes = notes_with("/nowhere/libcupti.so");
        fprintf(stderr, "%s", notes.c_str());
        exit(0);
      },
      testing::ExitedWithCode(0), "3: no PC samples because CUPTI was not found:\n.*/nowhere/libcupti.so");
}

TEST(SamplingAbsent, AnOlderCuptiIsRefused) {
  EXPECT_EXIT(
      {
        fake().version = kCupti12_9;
        const std::string notes = notes_with(SONDE_FAKE_SAMPLING);
        fprintf(stderr, "%s", notes.c_str());
        exit(0);
      },
      testing::ExitedWithCode(0), "3: no PC samples because .* is CUPTI 12.9, PC sampling is read as CUPTI 13.0");
}

}  // namespace
}  // namespace sonde::test
