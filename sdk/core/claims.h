// The services sonde.claim/1 and sonde.ranges/1.
#pragma once

#include <sonde/claim.h>
#include <sonde/ranges.h>

namespace sonde::core {

const sonde_claim_service_t &claim_service();
const sonde_ranges_service_t &ranges_service();

// Held around fork; a child forgets what its parent claimed and watched.
void lock_claims();
void unlock_claims();
void forget_claims();
void lock_ranges();
void unlock_ranges();
void forget_ranges();

}  // namespace sonde::core
