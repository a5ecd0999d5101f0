#include "loader/search.h"

#include <gtest/gtest.h>

namespace sonde::loader {
namespace {

std::vector<std::string> paths(const SearchInputs &inputs) {
  std::vector<std::string> result;
  for (const SearchPlace &place : search_places(inputs)) result.push_back(place.path);
  return result;
}

SearchInputs everything() {
  SearchInputs inputs;
  inputs.added = {"/b", "/a"};
  inputs.plugin_path = "/env/one::relative:/env/two";
  inputs.data_home = "/data";
  inputs.home = "/home/me";
  inputs.library_folder = "/opt/lib";
  return inputs;
}

TEST(Search, GoesFromAddedOverEnvironmentAndUserToTheLibrary) {
  EXPECT_EQ(paths(everything()), (std::vector<std::string>{"/b", "/a", "/env/one", "/env/two", "/data/sonde/plugins",
                                                           "/opt/lib/sonde/plugins", "/opt/lib/sonde/ports"}));
}

TEST(Search, FallsBackToTheHomeFolder) {
  SearchInputs inputs;
  inputs.data_home = "relative";
  inputs.home = "/home/me";
  EXPECT_EQ(paths(inputs), (std::vector<std::string>{"/home/me/.local/share/sonde/plugins"}));
}

TEST(Search, IgnoresTheEnvironmentWhenPrivilegesAreRaised) {
  SearchInputs inputs = everything();
  inputs.raised = true;
  EXPECT_EQ(paths(inputs), (std::vector<std::string>{"/b", "/a", "/opt/lib/sonde/plugins", "/opt/lib/sonde/ports"}));
}

TEST(Search, KnowsTheFolderOfItsOwnObject) {
  EXPECT_TRUE(process_inputs().library_folder.ends_with("bin/tests")) << process_inputs().library_folder;
  EXPECT_FALSE(has_raised_privileges());
}

}  // namespace
}  // namespace sonde::loader
