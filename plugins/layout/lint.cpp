#include "lint.h"

#include <sonde/toolkit/ttgir.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "module_lint.h"

namespace sonde::layout_lint {

namespace files = std::filesystem;

void Lint::run() {
  files_.clear();
  std::vector<std::string> paths;
  for (const std::string &given : options_.files) {
    std::error_code error;
    if (!files::exists(given, error)) {
      throw Failure(SONDE_E_NOT_FOUND, "layout: option files: " + given + ": no such file or folder");
    }
    if (!files::is_directory(given, error)) {
      paths.push_back(given);
      continue;
    }
    std::vector<std::string> found;
    for (files::recursive_directory_iterator it(given, files::directory_options::skip_permission_denied, error), end;
         !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".ttgir") found.push_back(it->path().string());
    }
    std::sort(found.begin(), found.end());
    paths.insert(paths.end(), found.begin(), found.end());
  }
  for (const std::string &path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    if (file) text << file.rdbuf();
    if (!file) {
      FileResult result;
      result.path = path;
      result.error = "the file cannot be read";
      result.unparsed = 1;
      files_.push_back(std::move(result));
      continue;
    }
    files_.push_back(check(path, text.str()));
  }
}

FileResult Lint::check(const std::string &path, const std::string &text) const {
  FileResult result;
  result.path = path;
  ir::Error error;
  const std::optional<ir::Module> module = ir::Module::read(text, &error);
  if (!module) {
    result.error_line = error.place.line;
    result.error_column = error.place.column;
    result.error = std::to_string(error.place.line) + ":" + std::to_string(error.place.column) + ": " + error.text;
    result.unparsed = 1;
    return result;
  }
  ModuleLint lint(host_, options_, path, *module);
  result.sites = lint.run();
  result.operations = module->operations().size();
  result.unparsed = lint.unparsed();
  result.target = lint.target().name;
  return result;
}

uint64_t Lint::sites() const {
  uint64_t count = 0;
  for (const FileResult &file : files_) count += file.sites.size();
  return count;
}

uint64_t Lint::unparsed() const {
  uint64_t count = 0;
  for (const FileResult &file : files_) count += file.unparsed;
  return count;
}

uint64_t Lint::unsupported() const {
  uint64_t count = 0;
  for (const FileResult &file : files_) {
    for (const Site &site : file.sites) count += site.plan.empty() ? 1 : 0;
  }
  return count;
}

}  // namespace sonde::layout_lint
