#include "loader/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

namespace sonde::loader {

struct Module::State {
  boost::dll::shared_library library;
};

Module::Module(std::unique_ptr<State> state) : state_(std::move(state)) {}
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&) noexcept = default;
Module::~Module() = default;

Result<Module> Module::open(const std::string &path) {
  namespace dll = boost::dll;
  std::error_code missing;
  const std::filesystem::path full = std::filesystem::absolute(path, missing);
  if (missing) return Error{SONDE_E_IO, fmt::format("{}: {}", path, missing.message())};
  auto state = std::make_unique<State>();
  std::error_code error;
  ::dlerror();
  state->library.load(full, error, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  if (error) {
    const char *const reason = ::dlerror();  // says more than the code does
    return Error{SONDE_E_IO,
                 fmt::format("{}: cannot be loaded: {}", path, reason == nullptr ? error.message() : reason)};
  }
  return Module(std::move(state));
}

const void *Module::symbol(const char *name) const {
  if (!state_->library.has(name)) return nullptr;
  return &state_->library.get<const char>(name);
}

void Module::keep() {
  // Handles of the process, never closed and always reachable.
  static std::mutex *const mutex = new std::mutex;
  static auto *const kept = new std::vector<std::unique_ptr<State>>;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(state_));
}

}  // namespace sonde::loader
