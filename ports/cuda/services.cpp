#include "services.h"

namespace sonde::cuda {

Services &services() {
  static Services instance;
  return instance;
}

}  // namespace sonde::cuda
