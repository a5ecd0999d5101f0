// The symbol by which NVTX finds an injection library that is linked into the program.
#include <sonde/status.h>

#include "nvtx.h"

namespace {

using sonde::cuda::nvtx::GetExportTable;

int initialize(GetExportTable get_export_table) {
  return sonde::cuda::nvtx::inject(get_export_table) == SONDE_OK ? 1 : 0;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern int (*InitializeInjectionNvtx2_fnptr)(GetExportTable);
int (*InitializeInjectionNvtx2_fnptr)(GetExportTable) = initialize;
}
