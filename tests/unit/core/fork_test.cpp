// fork: the child starts with nothing wanted, its inherited sessions are inert, and a new one works.
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

namespace sonde::test {
namespace {

// Runs `body` in a child; its result is the exit code.
int in_child(const std::function<int()> &body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Fork, AChildCapturesNothingThroughItsParentsSession) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  ASSERT_TRUE(session.emit(1));
  sonde_writer_t *const writer = session.writer();
  const uint64_t *word = nullptr;
  ASSERT_EQ(api().capture.demand(session.get(), test_space(), &word), SONDE_OK);
  sonde_session_t *const handle = session.get();
  const int code = in_child([&] {
    if (sonde_wants(word, 1)) return 1;  // the word reads 0
    const Numbered record = numbered(2);
    if (sonde_write(&api().capture, writer, &record, sizeof(record)) != 0) return 2;  // a cached writer takes nothing
    if (api().sessions.stop(handle, 0) != SONDE_E_INVALID) return 3;
    return 0;
  });
  EXPECT_EQ(code, 0);
  ASSERT_TRUE(session.emit(3));
  session.stop();
  ASSERT_EQ(collector.numbers().size(), 2u) << "the parent's capture does not notice";
  EXPECT_EQ(collector.numbers()[1].number, 3u);
}

#if !defined(__SANITIZE_THREAD__)  // the thread checker does not allow new threads after a fork of a threaded process
TEST(Fork, AChildMayOpenASessionOfItsOwn) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  ASSERT_TRUE(session.emit(1));
  const int code = in_child([&] {
    TestSession own;
    Collector mine(own, test_space());
    own.start();
    for (uint64_t i = 0; i < 1000; ++i) {
      if (!own.emit(i)) return 1;
    }
    own.stop();
    return mine.numbers().size() == 1000 ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
  session.stop();
  EXPECT_EQ(collector.numbers().size(), 1u);
}

TEST(Fork, ForkingWhileOthersEmitDoesNotHang) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; !stop; ++i) {
        session.emit(i);
        sonde_string_t id = 0;
        api().capture.intern(("fork" + std::to_string(i % 1000)).c_str(), UINT64_MAX, &id);
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(in_child([&] {
                sonde_string_t id = 0;
                return api().capture.intern("in the child", UINT64_MAX, &id) == SONDE_OK ? 0 : 1;
              }),
              0);
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
  session.stop();
}
#endif

}  // namespace
}  // namespace sonde::test
