// Kernel names for people.
#pragma once

#include <string>
#include <string_view>

namespace sonde::toolkit {

// The name in C++ spelling when it is mangled by the Itanium rules, otherwise as it is; also as it is beyond what the
// C++ library demangles (about 1,000 bytes in libstdc++). Two mangled names may demangle alike, so a demangled name
// is no key.
std::string demangle(std::string_view name);

// The demangled name without return type, parameters and template arguments:
// "void at::native::(anonymous namespace)::sum<4, float>(float*)" becomes
// "at::native::(anonymous namespace)::sum<...>". A name that is not of that form stays as it is: nothing is assumed
// of prefixes, and a name that cannot be read is not lost. Of a mangled name that is too long for demangle() it gives
// the part before the first template arguments.
std::string shorten_kernel_name(std::string_view name);

// At most `limit` bytes, cut in the middle with "..." (never inside a UTF-8 sequence). limit >= 8.
std::string ellipsize(std::string_view text, size_t limit);

}  // namespace sonde::toolkit
