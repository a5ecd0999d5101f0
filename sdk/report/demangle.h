// Names of C++ functions for people. Files keep the names as they came: two mangled names may read alike.
#pragma once

#include <string>
#include <string_view>

namespace sonde::report {

// A readable form of an Itanium-mangled name ("_Z..."); anything else is returned unchanged. The compiler's library
// refuses names of more than about 1,000 bytes; of those the qualified name alone is read, its template arguments
// shown as <…>. There is no upper limit. A name that is made to do harm can still take the library long: within 1,000
// bytes substitutions can double a text many times, and it offers no bound.
std::string demangle(std::string_view name);

// At most `width` cells of printable text. A demangled name gives up its return type and parameters first, then its
// middle.
std::string shorten_name(std::string_view name, size_t width);

}  // namespace sonde::report
