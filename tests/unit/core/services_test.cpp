#include "support.h"

namespace sonde::test {
namespace {

TEST(Services, AnUnknownOneIsNamed) {
  api();
  const void *table = &table;
  EXPECT_EQ(host_table()->get_service("sonde.nothing/1", 0, &table), SONDE_E_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
  EXPECT_NE(std::string(host_table()->last_error()).find("sonde.nothing/1"), std::string::npos);
}

TEST(Services, ATableThatIsTooShortIsRefusedWithBothSizes) {
  api();
  const void *table = nullptr;
  EXPECT_EQ(host_table()->get_service(SONDE_SESSION_SERVICE, 100'000, &table), SONDE_E_TOO_OLD);
  const std::string text = host_table()->last_error();
  EXPECT_NE(text.find("100000"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(sizeof(sonde_session_service_t))), std::string::npos) << text;
  EXPECT_EQ(host_table()->get_service(SONDE_SESSION_SERVICE, SONDE_NEED(sonde_session_service_t, set_current), &table),
            SONDE_OK);
}

TEST(Services, ErrorTextBelongsToTheThread) {
  api();
  host_table()->set_error(SONDE_E_USER, "mine");
  std::thread([] {
    EXPECT_STREQ(host_table()->last_error(), "");
    host_table()->set_error(SONDE_E_USER, "theirs");
  }).join();
  EXPECT_STREQ(host_table()->last_error(), "mine");
}

TEST(Services, NullArgumentsAreErrors) {
  EXPECT_EQ(host_table()->get_service(nullptr, 0, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(api().sessions.open(nullptr, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(api().sessions.start(nullptr), SONDE_E_INVALID);
  EXPECT_EQ(api().capture.emit(nullptr, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(api().delivery.subscribe(nullptr, nullptr, nullptr), SONDE_E_INVALID);
  int something = 0;
  EXPECT_EQ(api().sessions.close(reinterpret_cast<sonde_session_t *>(&something)), SONDE_E_INVALID) << "not a session";
}

}  // namespace
}  // namespace sonde::test
