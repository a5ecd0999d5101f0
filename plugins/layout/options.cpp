#include "options.h"

namespace sonde::layout_lint {

const sonde_option_t kOptionSpecs[kOptionCount] = {
    sonde_option_t{"files", "[]", "TTGIR files, and folders in which *.ttgir files are looked for", "", "",
                   SONDE_OPTION_TEXTS, 0},
    sonde_option_t{
        "matrix_instructions", "auto",
        "whether ldmatrix and stmatrix may be used; auto: ldmatrix from compute capability 7.5, stmatrix from "
        "9.0 of the module's ttg.target on (PTX ISA)",
        "", "auto|on|off", SONDE_OPTION_TEXT, 0},
    sonde_option_t{
        "banks", "0",
        "banks of 32 bits of shared memory; 0: by the module's target, 32 (CUDA C++ Programming Guide), 64 for "
        "gfx950",
        "1", "0..64", SONDE_OPTION_I64, 0},
    sonde_option_t{
        "least_vector_bits", "32",
        "a lane that moves fewer bits by one global access is reported; 32 is a register and the smallest that "
        "cp.async copies (PTX ISA)",
        "bits", "1..128", SONDE_OPTION_I64, 0},
    sonde_option_t{
        "least_efficiency", "0.5",
        "global accesses that want a smaller part of the 32-byte sectors they touch are reported (own choice)", "1",
        "0..1", SONDE_OPTION_F64, 0},
    sonde_option_t{
        "least_conflicts", "1",
        "wavefronts lost to bank conflicts by one warp's access from which on it is reported (own choice: any)", "1",
        "1..1000000", SONDE_OPTION_I64, 0},
    sonde_option_t{
        "least_copies", "4",
        "an access is reported when so many lanes and warps of a block make it for the same data (own choice)", "1",
        "2..1048576", SONDE_OPTION_I64, 0},
    sonde_option_t{"notes", "true", "report notes beside warnings", "", "", SONDE_OPTION_BOOL, 0},
};

Options read_options(const Host &host, const Config &config) {
  Options options;
  const auto &service = host.service<sonde_config_service_t>();
  uint64_t count = 0;
  host.check(service.count(config.get(), "files", &count));
  for (uint64_t i = 0; i < count; ++i) options.files.push_back(config.text(("files." + std::to_string(i)).c_str()));
  options.matrix_instructions = config.text("matrix_instructions");
  options.banks = config.i64("banks");
  options.least_vector_bits = config.i64("least_vector_bits");
  options.least_efficiency = config.f64("least_efficiency");
  options.least_conflicts = config.i64("least_conflicts");
  options.least_copies = config.i64("least_copies");
  options.reports_notes = config.boolean("notes");
  return options;
}

}  // namespace sonde::layout_lint
