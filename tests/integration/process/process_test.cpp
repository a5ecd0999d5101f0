// Each test runs a small program under libsonde_inject.so, then reads its captures through the public services alone.
#include <gtest/gtest.h>
#include <sonde/sonde.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

template <typename Service>
const Service &service(const char *id) {
  const void *table = nullptr;
  if (sonde_host()->get_service(id, sizeof(uint32_t), &table) != SONDE_OK) std::abort();
  return *static_cast<const Service *>(table);
}

// One capture file as it reads back.
struct Source {
  std::string file;
  bool complete = false;
  uint64_t process = 0;
  uint64_t parent = 0;
  std::map<std::string, uint64_t> marks;  // by name
  std::set<uint64_t> numbers;             // payloads
  uint64_t repeated = 0;                  // payloads seen again
  std::vector<std::string> notes;
  std::set<uint64_t> forked;  // process ids that its fork records name
  uint64_t total() const {
    uint64_t sum = 0;
    for (const auto &[name, count] : marks) sum += count;
    return sum;
  }
};

struct Captures {
  std::vector<Source> sources;
  std::map<uint32_t, uint64_t> losses;  // records by cause; UINT64_MAX: unknown
};

struct Collector {
  std::mutex mutex;
  std::vector<Source> *sources = nullptr;
};

sonde_status collect(void *user, const sonde_batch_t *batch) {
  auto &collector = *static_cast<Collector *>(user);
  const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  if (batch->source == 0) return SONDE_OK;  // what the reading session says of itself
  const std::lock_guard lock(collector.mutex);
  Source &source = collector.sources->at(batch->source - 1);
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    if (record->space == SONDE_SPACE_FRAMEWORK && record->type == SONDE_FRAMEWORK_MARK) {
      const auto *const mark = reinterpret_cast<const sonde_framework_scope_t *>(record);
      const char *name = "?";
      capture.text(batch->session, batch->source, mark->name, &name);
      ++source.marks[name];
      if (!source.numbers.insert(mark->payload).second) ++source.repeated;
    }
    if (record->space == SONDE_SPACE_SESSION && record->type == SONDE_SESSION_NOTE) {
      const char *text = "?";
      capture.text(batch->session, batch->source, reinterpret_cast<const sonde_session_note_t *>(record)->text, &text);
      source.notes.emplace_back(text);
    }
    if (record->space == SONDE_SPACE_SESSION && record->type == SONDE_SESSION_FORK) {
      source.forked.insert(reinterpret_cast<const sonde_session_fork_t *>(record)->child);
    }
  }
  return SONDE_OK;
}

Captures read_captures(const std::string &folder) {
  Captures captures;
  const auto &store = service<sonde_store_service_t>(SONDE_STORE_SERVICE);
  const auto &sessions = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  sonde_capture_t *capture = nullptr;
  if (store.open(folder.c_str(), &capture) != SONDE_OK) return captures;
  uint64_t count = 0;
  store.source_count(capture, &count);
  for (uint64_t index = 0; index < count; ++index) {
    sonde_source_info_t info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(store.source_at(capture, index, &info), SONDE_OK);
    Source source;
    source.file = fs::path(info.path).filename().string();
    source.complete = info.complete != 0;
    source.process = info.process;
    source.parent = info.parent_process;
    captures.sources.push_back(std::move(source));
  }
  std::vector<sonde_loss_t> losses(256);
  uint64_t loss_count = 0;
  store.losses(capture, losses.data(), losses.size(), &loss_count);
  for (uint64_t index = 0; index < loss_count && index < losses.size(); ++index) {
    captures.losses[losses[index].cause] += losses[index].records;
  }
  sonde_session_t *session = nullptr;
  EXPECT_EQ(sessions.open(nullptr, &session), SONDE_OK);
  Collector collector;
  collector.sources = &captures.sources;
  const sonde_interest_t interests[] = {{SONDE_SPACE_FRAMEWORK, SONDE_LEVEL_RECORDS, UINT64_MAX},
                                        {SONDE_SPACE_SESSION, SONDE_LEVEL_RECORDS, UINT64_MAX}};
  sonde_subscription_t subscription{};
  subscription.struct_size = sizeof(subscription);
  subscription.queue_policy = SONDE_QUEUE_WAIT;
  subscription.name = "test";
  subscription.interests = interests;
  subscription.interest_count = 2;
  subscription.on_batch = collect;
  subscription.user = &collector;
  uint64_t id = 0;
  EXPECT_EQ(service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE).subscribe(session, &subscription, &id), SONDE_OK);
  EXPECT_EQ(sessions.start(session), SONDE_OK);
  EXPECT_EQ(store.replay(capture, session, nullptr, nullptr), SONDE_OK) << sonde_host()->last_error();
  EXPECT_EQ(sessions.stop(session, 0), SONDE_OK);
  EXPECT_EQ(sessions.close(session), SONDE_OK);
  EXPECT_EQ(store.close(capture), SONDE_OK);
  return captures;
}

class Process : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sonde-process-" + std::to_string(::getpid()) + "-" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_configuration("record: {path: " + capture_folder() + ", start: eager}\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string capture_folder() const { return (folder_ / "run").string(); }
  void write_configuration(const std::string &text) { std::ofstream(folder_ / "run.yaml") << text; }

  // Runs a program under the preload; its wait status. It is killed after 30 s, which then shows.
  int run(std::vector<std::string> words) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("SONDE_RUN", (folder_ / "run.yaml").c_str(), 1);
      ::setenv("LD_PRELOAD", PRELOAD, 1);
      ::unsetenv("SONDE_EXEC");
      ::alarm(30);
      std::vector<char *> pointers;
      for (std::string &word : words) pointers.push_back(word.data());
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    child_ = static_cast<uint64_t>(child);
    return status;
  }
  int run_emitter(const std::string &way, const std::string &argument = "") {
    std::vector<std::string> words{EMITTER, way};
    if (!argument.empty()) words.push_back(argument);
    return run(std::move(words));
  }

  static bool exited(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  static bool died(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

  // The one capture of a program of one process, whole.
  void expect_one_complete(uint64_t marks) {
    const Captures captures = read_captures(capture_folder());
    ASSERT_EQ(captures.sources.size(), 1u);
    const Source &source = captures.sources[0];
    EXPECT_TRUE(source.complete);
    EXPECT_EQ(source.process, child_);
    EXPECT_EQ(source.total(), marks);
    EXPECT_EQ(source.repeated, 0u);
    EXPECT_EQ(source.numbers.size(), marks);
    EXPECT_TRUE(captures.losses.empty());
    EXPECT_FALSE(fs::exists(fs::path(capture_folder()) / (source.file + ".live")));
  }

  fs::path folder_;
  uint64_t child_ = 0;
};

TEST_F(Process, ReturningFromMainClosesTheCapture) {
  EXPECT_TRUE(exited(run_emitter("return"), 0));
  expect_one_complete(100);
  EXPECT_TRUE(fs::exists(folder_ / "run" / "run.json"));
}

TEST_F(Process, EveryKindOfImmediateExitClosesTheCapture) {
  const struct {
    const char *way;
    int code;
  } cases[] = {{"_exit", 5}, {"_Exit", 6}, {"quick_exit", 7}};
  for (const auto &item : cases) {
    fs::remove_all(capture_folder());
    const int status = run_emitter(item.way);
    EXPECT_TRUE(exited(status, item.code)) << item.way << " " << status;
    expect_one_complete(100);
  }
}

TEST_F(Process, ThreadsThatComeAndGoLoseNothing) {
  EXPECT_TRUE(exited(run_emitter("threads"), 0));
  expect_one_complete(100 + 10 * 4 * 100);
}

TEST_F(Process, ExitInsideASignalHandlerClosesTheCapture) {
  EXPECT_TRUE(exited(run_emitter("exit_in_handler"), 3));
  expect_one_complete(100);
}

// A handler that restores the default and raises again must take effect at once and must not hang.
TEST_F(Process, ARestoredDefaultActionTakesEffectAndTheLossIsStated) {
  EXPECT_TRUE(died(run_emitter("signal"), SIGTERM));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 1u);
  EXPECT_FALSE(captures.sources[0].complete);
}

TEST_F(Process, AbortAndKillLeaveACaptureThatStatesItsLoss) {
  for (const auto &[way, signal] : {std::pair{"abort", SIGABRT}, std::pair{"kill", SIGKILL}}) {
    fs::remove_all(capture_folder());
    const int status = run_emitter(way);
    EXPECT_TRUE(died(status, signal)) << way << " " << status;
    const Captures captures = read_captures(capture_folder());
    ASSERT_EQ(captures.sources.size(), 1u) << way;
    EXPECT_FALSE(captures.sources[0].complete) << way;
    // 100 marks were emitted: each is in the file or in the ledger, where a number can be given.
    const auto tail = captures.losses.find(SONDE_LOSS_TAIL);
    const uint64_t read = captures.sources[0].total();
    EXPECT_TRUE(read == 100 || tail != captures.losses.end()) << way << ": " << read << " marks and no loss stated";
  }
}

TEST_F(Process, SealedChunksSurviveAKill) {
  EXPECT_TRUE(died(run_emitter("sleep_and_kill"), SIGKILL));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 1u);
  const Source &source = captures.sources[0];
  EXPECT_FALSE(source.complete);
  EXPECT_EQ(source.marks.at("first"), 100u);
  EXPECT_EQ(source.repeated, 0u);
  const bool has_tail = source.marks.contains("tail");
  EXPECT_TRUE(has_tail || captures.losses.contains(SONDE_LOSS_TAIL)) << "the tail is neither there nor stated as lost";
}

TEST_F(Process, AForkedChildHasAFileOfItsOwnAndNothingIsDoubled) {
  EXPECT_TRUE(exited(run_emitter("fork"), 0));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 2u);
  std::map<uint64_t, const Source *> by_process;
  for (const Source &source : captures.sources) by_process[source.process] = &source;
  ASSERT_EQ(by_process.size(), 2u);
  ASSERT_TRUE(by_process.contains(child_));
  for (const auto &[process, source] : by_process) {
    EXPECT_TRUE(source->complete);
    EXPECT_EQ(source->repeated, 0u);
    if (process == child_) {
      EXPECT_EQ(source->marks, (std::map<std::string, uint64_t>{{"first", 100}, {"parent", 10}}));
      ASSERT_EQ(source->forked.size(), 1u);
      EXPECT_TRUE(by_process.contains(*source->forked.begin()));
    } else {
      EXPECT_EQ(source->marks, (std::map<std::string, uint64_t>{{"child", 50}}));
      EXPECT_EQ(source->parent, child_);
      EXPECT_TRUE(source->forked.empty());
    }
  }
  EXPECT_TRUE(captures.losses.empty());
}

TEST_F(Process, ChildrenAndGrandchildrenAreAllComplete) {
  EXPECT_TRUE(exited(run_emitter("fork_many"), 0));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 11u);
  std::map<std::string, uint64_t> marks;
  for (const Source &source : captures.sources) {
    EXPECT_TRUE(source.complete) << source.file;
    EXPECT_EQ(source.repeated, 0u);
    for (const auto &[name, count] : source.marks) marks[name] += count;
  }
  EXPECT_EQ(marks, (std::map<std::string, uint64_t>{{"first", 100}, {"child", 100}, {"grandchild", 25}}));
}

TEST_F(Process, AChildWithoutEventsLeavesNoFile) {
  EXPECT_TRUE(exited(run_emitter("fork_silent"), 0));
  uint64_t files = 0;
  for (const auto &entry : fs::directory_iterator(capture_folder())) {
    EXPECT_NE(entry.path().extension(), ".live") << entry.path();
    files += entry.path().extension() == ".sonde" ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(Process, EachImageOfAProcessHasItsOwnNumber) {
  EXPECT_TRUE(exited(run_emitter("exec_twice"), 0));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 3u);
  std::set<std::string> ends;
  for (const Source &source : captures.sources) {
    EXPECT_TRUE(source.complete) << source.file;
    EXPECT_EQ(source.process, child_);
    EXPECT_EQ(source.total(), 100u);
    ends.insert(source.file.substr(source.file.rfind('-')));
  }
  EXPECT_EQ(ends, (std::set<std::string>{"-0.sonde", "-1.sonde", "-2.sonde"}));
}

TEST_F(Process, AnExecOfNothingDisturbsNothing) {
  EXPECT_TRUE(exited(run_emitter("exec_nothing"), 0));
  expect_one_complete(125);
}

TEST_F(Process, AnExecThatFailsLateGoesOnInAnotherFile) {
  const fs::path file = folder_ / "unrunnable";
  std::ofstream(file) << "\x7f"
                         "ELF but not really";
  fs::permissions(file, fs::perms::owner_all);
  EXPECT_TRUE(exited(run_emitter("exec_unrunnable", file.string()), 0));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 2u);
  uint64_t total = 0;
  for (const Source &source : captures.sources) {
    EXPECT_TRUE(source.complete);
    EXPECT_EQ(source.process, child_);
    total += source.total();
  }
  EXPECT_EQ(total, 125u);
}

TEST_F(Process, AChildOfVforkDoesNotTouchItsParentsRun) {
  for (const char *const way : {"vfork_exec", "vfork_exit", "system"}) {
    fs::remove_all(capture_folder());
    EXPECT_TRUE(exited(run_emitter(way), 0)) << way;
    expect_one_complete(125);
  }
}

TEST_F(Process, AProgramWithoutEventsLeavesNoCapture) {
  EXPECT_TRUE(exited(run({PLAIN}), 0));
  EXPECT_TRUE(exited(run({"/bin/sh", "-c", "for i in 1 2 3; do /bin/true; done; exit 4"}), 4));
  if (fs::exists(capture_folder())) {
    for (const auto &entry : fs::directory_iterator(capture_folder())) {
      EXPECT_NE(entry.path().extension(), ".sonde") << entry.path();
      EXPECT_NE(entry.path().extension(), ".live") << entry.path();
    }
  }
}

// The default of `sonde run`: a program that embeds Sonde is captured, the shells around it leave nothing.
TEST_F(Process, WithTheHostPortOnlyWhatEmbedsSondeIsCaptured) {
  write_configuration("record: {path: " + capture_folder() + "}\nports: {host: {}}\nplugins: {path: [" +
                      std::string(HOST_PORT) + "]}\n");
  EXPECT_TRUE(exited(run({PLAIN}), 0));
  EXPECT_FALSE(fs::exists(capture_folder()));
  EXPECT_TRUE(exited(run({"/bin/sh", "-c", "/bin/true; " EMITTER " fork; /bin/true"}), 0));
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 2u);
  uint64_t total = 0;
  for (const Source &source : captures.sources) {
    EXPECT_TRUE(source.complete) << source.file;
    total += source.total();
  }
  EXPECT_EQ(total, 160u);
}

TEST_F(Process, WithoutEagerStartOrHostPortNothingBegins) {
  write_configuration("record: {path: " + capture_folder() + "}\n");
  EXPECT_TRUE(exited(run({PLAIN}), 0));
  EXPECT_FALSE(fs::exists(capture_folder()));
  EXPECT_TRUE(exited(run_emitter("return"), 71)) << "and there is no current session";
}

// As CUDA, NVTX, rocprofiler and the OpenCL loader open the library themselves, without a preload.
class Entries : public Process {
 protected:
  int run_entries(bool has_configuration, bool forks = false) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (has_configuration) ::setenv("SONDE_RUN", (folder_ / "run.yaml").c_str(), 1);
      ::alarm(30);
      ::execl(ENTRIES, ENTRIES, PRELOAD, forks ? "fork" : nullptr, nullptr);
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    child_ = static_cast<uint64_t>(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(Entries, WithoutARunEveryRuntimeGoesOnWithoutATool) { EXPECT_EQ(run_entries(false), 1); }

TEST_F(Entries, WithoutAPortEveryRuntimeGoesOnWithoutATool) {
  write_configuration("record: {path: " + capture_folder() + "}\n");
  EXPECT_EQ(run_entries(true), 1);
}

TEST_F(Entries, ReachThePortOfTheRunAndTheCaptureIsClosedAtExit) {
  write_configuration("record: {path: " + capture_folder() + "}\nports: {entries: {}}\nplugins: {path: [" +
                      std::string(ENTRIES_PORT) + "]}\n");
  EXPECT_EQ(run_entries(true), 15);
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 1u);
  EXPECT_TRUE(captures.sources[0].complete);
  EXPECT_EQ(captures.sources[0].marks,
            (std::map<std::string, uint64_t>{{"cuda", 1}, {"nvtx", 1}, {"opencl", 1}, {"rocprofiler", 1}}));
}

// A runtime that calls in a forked child for the first time there begins a run of that child.
TEST_F(Entries, InAForkedChildBeginARunOfItsOwn) {
  write_configuration("record: {path: " + capture_folder() + "}\nports: {entries: {}}\nplugins: {path: [" +
                      std::string(ENTRIES_PORT) + "]}\n");
  EXPECT_EQ(run_entries(true, true), 15);
  const Captures captures = read_captures(capture_folder());
  ASSERT_EQ(captures.sources.size(), 2u);
  for (const Source &source : captures.sources) {
    EXPECT_EQ(source.marks.size(), 4u) << source.file;
    EXPECT_TRUE(source.complete) << source.file;
  }
}

TEST_F(Process, ABadConfigurationLeavesTheProgramAlone) {
  write_configuration("record: {path: " + capture_folder() + ", start: eager}\nanalyses: [nobody]\n");
  EXPECT_TRUE(exited(run({PLAIN}), 0));
  write_configuration("record: [\n");
  EXPECT_TRUE(exited(run({PLAIN}), 0));
  fs::remove(folder_ / "run.yaml");
  EXPECT_TRUE(exited(run({PLAIN}), 0));
}

}  // namespace
