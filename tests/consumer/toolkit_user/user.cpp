// A program that uses the toolkit of the installed package.
#include <sonde/toolkit/lifetime_map.h>
#include <sonde/toolkit/names.h>
#include <sonde/toolkit/quantiles.h>
#include <sonde/toolkit/sweep.h>

int main() {
  sonde::toolkit::Quantiles quantiles;
  for (int i = 1; i <= 9; ++i) quantiles.add(i);
  sonde::toolkit::LifetimeMap<int> map;
  map.begin(0x1000, 64, 1, 5);
  const bool right = quantiles.median() == 5 && map.find(0x1010, 2) != nullptr &&
                     sonde::toolkit::shorten_kernel_name("_Z9vectorAddPfS_i") == "vectorAdd";
  return right ? 0 : 1;
}
