#include "run/settings.h"

#include "fixture.h"

namespace sonde::run {
namespace {

class SettingsTest : public RunTest {
 protected:
  std::string faults(const std::string &text) {
    const OwnedConfig tree = parsed(text);
    Result<Settings> settings = read_settings(*services_, tree.get());
    return settings ? "" : settings.error().text;
  }
};

TEST_F(SettingsTest, ReadsTheWholeTree) {
  const OwnedConfig tree = parsed(
      "session: {policy: stall, ring: 128Ki, memory: 32Mi, stall: 2ms, name: mine}\n"
      "ports: {host: {}, cuda: {api: true}}\n"
      "record: {path: out/run, level: 5, start: eager, when_full: drop, spaces: [sonde.device, sonde.memory]}\n"
      "analyses: [workload, {workload: {idle: 1}}]\n"
      "scripts:\n  - {path: top.lua, options: {rows: 10}}\n  - 'it: is.lua'\n"
      "outputs: [{format: text, rows: 5}, {format: json, path: report.json}]\n"
      "plugins: {path: [./mine]}\n");
  Result<Settings> settings = read_settings(*services_, tree.get());
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->policy, SONDE_POLICY_STALL);
  EXPECT_EQ(settings->ring_bytes, 131072u);
  EXPECT_EQ(settings->memory_cap, 33554432u);
  EXPECT_EQ(settings->stall_ns, 2000000u);
  EXPECT_EQ(settings->deadline_ns, 2000000000u);
  EXPECT_TRUE(settings->record_path.starts_with('/') && settings->record_path.ends_with("/out/run"));
  EXPECT_TRUE(settings->record_eager);
  EXPECT_EQ(settings->writer.level, 5);
  EXPECT_EQ(settings->writer.when_full, SONDE_FULL_DROP);
  EXPECT_EQ(settings->record_spaces, "sonde.device sonde.memory");
  ASSERT_EQ(settings->ports.size(), 2u);
  EXPECT_EQ(settings->ports[1].id, "cuda");
  uint32_t api = 0;
  EXPECT_EQ(services_->config->get_bool(settings->ports[1].options, "api", &api), SONDE_OK);
  EXPECT_EQ(api, 1u);
  ASSERT_EQ(settings->analyses.size(), 4u);
  EXPECT_EQ(settings->analyses[0].options, nullptr);
  EXPECT_EQ(settings->analyses[1].where, "run.yaml:4:33");
  EXPECT_EQ(settings->analyses[2].id, "lua");
  EXPECT_EQ(settings->analyses[2].label, "top.lua");
  EXPECT_EQ(settings->analyses[3].label, "it: is.lua");
  const char *path = nullptr;
  EXPECT_EQ(services_->config->get_text(settings->analyses[3].options, "path", &path), SONDE_OK);
  EXPECT_STREQ(path, "it: is.lua");
  ASSERT_EQ(settings->outputs.size(), 2u);
  EXPECT_EQ(settings->outputs[0].path, "");
  EXPECT_EQ(settings->outputs[0].rows, 5u);
  EXPECT_TRUE(settings->outputs[1].path.ends_with("/report.json"));
  EXPECT_TRUE(settings->plugin_paths[0].ends_with("/mine"));
}

TEST_F(SettingsTest, HasDefaultsForEverything) {
  Result<Settings> settings = read_settings(*services_, nullptr);
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->ring_bytes, 1u << 20);
  EXPECT_EQ(settings->memory_cap, 64u << 20);
  EXPECT_EQ(settings->record_path, "");
  EXPECT_FALSE(settings->record_eager);
  EXPECT_TRUE(settings->ports.empty() && settings->analyses.empty() && settings->outputs.empty());
}

TEST_F(SettingsTest, RefusesUnknownKeysAndWrongShapesWithTheirPlace) {
  EXPECT_EQ(faults("sesion: {}\n").rfind("run.yaml:1:1: unknown option 'sesion' of a run", 0), 0u);
  EXPECT_NE(faults("session: {polcy: drop}\n").find("run.yaml:1:11: unknown option 'session.polcy'"),
            std::string::npos);
  EXPECT_NE(faults("session: {policy: keep}\n").find("expected one of drop, overwrite, stall"), std::string::npos);
  EXPECT_NE(faults("ports: host\n").find("run.yaml:1:8: 'ports' is text"), std::string::npos);
  EXPECT_NE(faults("ports: {host: yes}\n").find("the options of host are text"), std::string::npos);
  EXPECT_NE(faults("analyses: [[workload]]\n").find("run.yaml:1:12"), std::string::npos);
  EXPECT_NE(faults("scripts: {path: a.lua}\n").find("expected a list"), std::string::npos);
  EXPECT_NE(faults("outputs: [{format: xml}]\n").find("run.yaml:1:20"), std::string::npos);
  EXPECT_NE(faults("outputs: [{fromat: json}]\n").find("did you mean 'format'"), std::string::npos);
  EXPECT_NE(faults("record: {level: 20}\n").find("outside 0..19"), std::string::npos);
}

}  // namespace
}  // namespace sonde::run
