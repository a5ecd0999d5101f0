#include "core/claims.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/error.h"

namespace sonde::core {
namespace {

struct Claim {
  std::string mode;
  std::string holder;
  uint64_t count = 0;
};

struct Claims {
  std::mutex mutex;
  std::map<std::string, Claim, std::less<>> held;
};

// Never destroyed: plugins may release while the process ends.
Claims &claims() {
  static Claims *const instance = new Claims;
  return *instance;
}

bool empty(const char *text) { return text == nullptr || *text == '\0'; }

sonde_status take(const char *resource, const char *mode, const char *holder) {
  if (empty(resource) || empty(mode) || empty(holder)) {
    return fail(SONDE_E_INVALID, "claim.take: resource, mode and holder must not be empty");
  }
  return at_boundary([&]() -> sonde_status {
    Claims &all = claims();
    const std::lock_guard lock(all.mutex);
    Claim &claim = all.held[resource];
    if (claim.count != 0 && claim.mode != mode) {
      return fail(SONDE_E_BUSY, std::string("'") + resource + "' is in use for " + claim.mode + " by " + claim.holder +
                                    ", which excludes " + mode + " in the same process");
    }
    if (claim.count == 0) {
      claim.mode = mode;
      claim.holder = holder;
    }
    ++claim.count;
    return SONDE_OK;
  });
}

sonde_status release(const char *resource, const char *mode) {
  if (empty(resource) || empty(mode))
    return fail(SONDE_E_INVALID, "claim.release: resource and mode must not be empty");
  return at_boundary([&]() -> sonde_status {
    Claims &all = claims();
    const std::lock_guard lock(all.mutex);
    const auto found = all.held.find(std::string_view(resource));
    if (found == all.held.end() || found->second.mode != mode) {
      return fail(SONDE_E_STATE, std::string("'") + resource + "' is not in use for " + mode);
    }
    if (--found->second.count == 0) all.held.erase(found);
    return SONDE_OK;
  });
}

const sonde_claim_service_t kService = {sizeof(sonde_claim_service_t), 0, take, release};

}  // namespace

const sonde_claim_service_t &claim_service() { return kService; }

void lock_claims() { claims().mutex.lock(); }
void unlock_claims() { claims().mutex.unlock(); }
// A fresh map over the old one, whose nodes are left alone: a forked child must not free.
void forget_claims() { std::construct_at(&claims().held); }

}  // namespace sonde::core
