// NVTX: what a program says about itself, as sonde.framework and sonde.object records on the program's own threads.
//
// Works without CUPTI and without a GPU. Domains are named "nvtx:<name>", the default one "nvtx". Wide strings become
// UTF-8. Ranges that end on another thread than they began are joined by their id; a pop without a push is emitted
// as it is.
#pragma once

#include <string>

#include <sonde/base.h>

#include "nvtx_types.h"

namespace sonde::cuda::nvtx {

// Attaches to the NVTX instance behind `get_export_table`; every module of a program that carries NVTX has its own.
// Functions that an older NVTX lacks are left out. SONDE_E_INVALID: the tables are not what they should be. [any]
sonde_status inject(GetExportTable get_export_table);

// UTF-8 of a wide string; what is no Unicode character becomes U+FFFD.
std::string utf8(const wchar_t *text);

}  // namespace sonde::cuda::nvtx
