// One shared object, opened. Behind it is Boost.DLL.
#pragma once

#include <memory>
#include <string>

#include "core/error.h"

namespace sonde::loader {

class Module {
 public:
  // Opens with all symbols bound now and none shown to others. SONDE_E_IO holds the dynamic linker's reason.
  static Result<Module> open(const std::string &path);

  Module(Module &&) noexcept;
  Module &operator=(Module &&) noexcept;
  ~Module();  // closes it, unless kept

  // Address of a symbol, or null.
  const void *symbol(const char *name) const;

  // Leaves the object mapped for the life of the process.
  void keep();

 private:
  struct State;
  explicit Module(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sonde::loader
