// What is said of an object in every output: names of things, and what to do.
#pragma once

#include <string>

#include "memory.h"

namespace sonde::memory {

const char *level_name(toolkit::ObjectLevel level);

// "early_allocation, leak".
std::string pattern_list(const PatternSet &patterns);

// "kernel 12 (gemm)", "the copy before kernel 12".
std::string use_name(const Memory &memory, const Use &use);

// "allocation 0x7f00 (2.00 MiB)", with the operator it was made in.
std::string object_title(const Memory &memory, const Usage &usage);

// One or two sentences.
std::string suggestion(const Memory &memory, const Usage &usage, Pattern pattern);

}  // namespace sonde::memory
