// What is reported of one operation that moves data.
#pragma once

#include <sonde/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sonde::layout_lint {

struct Evidence {
  std::string name;
  std::string unit;
  std::variant<uint64_t, double, std::string> value;
};

// A broken rule.
struct Issue {
  std::string rule;  // without the origin: "bank_conflicts"
  uint32_t severity = SONDE_SEVERITY_WARNING;
  std::string message;
  std::string advice;
  std::string formula;
  std::vector<Evidence> evidence;
  double confidence = 1;
};

// A rule that was meant to be looked at and could not.
struct Unseen {
  std::string rule;
  std::string reason;
};

// Counts of accesses are those of one warp; empty: does not apply or is not known.
struct Site {
  std::string path;      // of the TTGIR file
  uint32_t ir_line = 0;  // in it
  std::string kernel;    // function
  std::string file;      // of the program
  uint32_t line = 0;     // 0: unknown
  uint32_t column = 0;
  std::string call_path;
  std::string variable;  // that the location names
  std::string operation;
  std::string tensor;  // "64x32xf16"
  std::string source;  // encodings as written
  std::string destination;
  std::string plan;    // how the data gets there; "" with a reason
  std::string reason;  // why there is no plan
  std::string instruction;
  uint32_t loop_depth = 0;
  std::optional<uint64_t> shared_bytes;
  std::optional<uint64_t> store_conflicts;  // wavefronts lost
  std::optional<uint64_t> load_conflicts;
  std::optional<uint64_t> vector_bits;       // of one lane's access; of a conversion its store to shared memory
  std::optional<uint64_t> load_vector_bits;  // of a conversion
  std::optional<uint64_t> instructions;      // of one thread
  std::optional<uint64_t> shuffles;
  std::optional<uint64_t> repetitions;
  std::optional<uint64_t> sectors;        // of the worst instruction, the fewest that what is proved allows
  std::optional<uint64_t> sectors_most;   // and the most
  std::optional<double> efficiency;       // bytes wanted / (32 sectors)
  std::optional<uint64_t> source_copies;  // holders of each element
  std::optional<uint64_t> destination_copies;
  std::vector<Issue> issues;
  std::vector<Unseen> unseen;
  std::vector<std::string> looked;  // rules that were decided, broken or not
};

}  // namespace sonde::layout_lint
