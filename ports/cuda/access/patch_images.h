// The device code of the port: made when Sonde was built where nvcc was there, else at run time.
#pragma once

#include <string>
#include <vector>

namespace sonde::cuda::access {

struct PatchImages {
  std::vector<char> patches;  // for the Compute Sanitizer
  std::vector<char> edges;    // kernels of the port
};

// For a device of compute capability `major`.`minor`. Looks beside the plugin for what the build made; where that is
// missing, compiles the sources that lie there with nvcc ($SONDE_NVCC, $CUDA_HOME/bin, $PATH, /usr/local/cuda/bin) and
// keeps the result in $SONDE_CACHE, else $XDG_CACHE_HOME/sonde, else ~/.cache/sonde. `folder`: where the plugin's files
// lie; empty: beside this plugin. False: `reason`.
bool find_patch_images(const std::string &folder, int major, int minor, PatchImages &out, std::string &reason);

}  // namespace sonde::cuda::access
