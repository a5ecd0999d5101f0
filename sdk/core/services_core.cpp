// The function tables of sonde.session/1, sonde.capture/1 and sonde.delivery/1.
#include <cstring>

#include "core/claims.h"
#include "core/columns.h"
#include "core/merge.h"
#include "core/services.h"
#include "core/session.h"
#include "core/spaces.h"
#include "core/strings.h"
#include "core/subscriber.h"
#include "core/threads.h"

namespace sonde::core {
namespace {

std::atomic<sonde_session_t *> current_session{nullptr};

// Runs `body` with the session behind a handle.
template <typename Body>
sonde_status with_session(sonde_session_t *handle, Body &&body) noexcept {
  Session *const session = find_session(handle);
  if (session == nullptr) return SONDE_E_INVALID;
  return at_boundary([&] { return body(*session); });
}

sonde_status status_of(const Result<void> &result) { return result ? SONDE_OK : fail(result.error()); }

template <typename T>
sonde_status give(const Result<T> &result, T *out) {
  if (!result) return fail(result.error());
  *out = *result;
  return SONDE_OK;
}

sonde_status no_out(const char *function) {
  return fail(SONDE_E_INVALID, std::string(function) + ": an out parameter is NULL");
}

// sonde.session/1

sonde_status session_open(const sonde_session_options_t *options, sonde_session_t **out) {
  if (out == nullptr) return no_out("session.open");
  *out = nullptr;
  return at_boundary([&] { return give(open_session(options), out); });
}

sonde_status session_start(sonde_session_t *session) {
  return with_session(session, [](Session &self) { return status_of(self.start()); });
}

sonde_status session_flush(sonde_session_t *session, uint64_t deadline_ns) {
  return with_session(session, [&](Session &self) { return status_of(self.flush(deadline_ns)); });
}

sonde_status session_stop(sonde_session_t *session, uint64_t deadline_ns) {
  return with_session(session, [&](Session &self) { return status_of(self.stop(deadline_ns)); });
}

sonde_status session_close(sonde_session_t *session) {
  sonde_session_t *expected = session;
  current_session.compare_exchange_strong(expected, nullptr);
  return at_boundary([&] { return status_of(close_session(session)); });
}

sonde_status session_status(sonde_session_t *session, sonde_session_status_t *out) {
  if (out == nullptr) return no_out("session.status");
  return with_session(session, [&](Session &self) {
    *out = self.status();
    return SONDE_OK;
  });
}

sonde_status session_losses(sonde_session_t *session, sonde_loss_t *rows, uint64_t capacity, uint64_t *count) {
  if (count == nullptr || (capacity > 0 && rows == nullptr)) return no_out("session.losses");
  return with_session(session, [&](Session &self) {
    const std::vector<sonde_loss_t> all = self.ledger().rows();
    *count = all.size();
    std::copy_n(all.begin(), std::min<uint64_t>(capacity, all.size()), rows);
    return SONDE_OK;
  });
}

sonde_status session_current(sonde_session_t **out) {
  if (out == nullptr) return no_out("session.current");
  *out = current_session.load(std::memory_order_acquire);
  if (*out == nullptr || find_session(*out) == nullptr) {
    *out = nullptr;
    return fail(SONDE_E_NOT_FOUND,
                "this process has no current session; start the program with `sonde run`, or open one");
  }
  return SONDE_OK;
}

sonde_status session_set_current(sonde_session_t *session) {
  if (session != nullptr && find_session(session) == nullptr) return SONDE_E_INVALID;
  current_session.store(session, std::memory_order_release);
  return SONDE_OK;
}

const sonde_session_service_t kSession = {sizeof(sonde_session_service_t),
                                          0,
                                          session_open,
                                          session_start,
                                          session_flush,
                                          session_stop,
                                          session_close,
                                          session_status,
                                          session_losses,
                                          session_current,
                                          session_set_current};

// sonde.capture/1

sonde_status capture_writer(sonde_session_t *session, sonde_writer_t **out) {
  if (out == nullptr) return no_out("capture.writer");
  *out = nullptr;
  return with_session(session, [&](Session &self) { return give(thread_writer(self), out); });
}

void *capture_reserve(sonde_writer_t *writer, uint32_t bytes) { return reserve(writer, bytes); }

sonde_status capture_emit(sonde_session_t *session, const sonde_record_t *record) {
  if (record == nullptr) return fail(SONDE_E_INVALID, "capture.emit: record is NULL");
  return with_session(session, [&](Session &self) -> sonde_status {
    if (record->fixed8 < 2 || record->fixed8 > record->size8 || record->space == 0 ||
        record->space >= SONDE_SPACE_COUNT || record->type == 0 || record->type >= SONDE_TYPE_COUNT) {
      self.ledger().add(0, 0, SONDE_LOSS_MALFORMED, 0, 1, SONDE_RECORD_BYTES(record));
      return fail(SONDE_E_INVALID, "capture.emit: the header says size8 " + std::to_string(record->size8) +
                                       ", fixed8 " + std::to_string(record->fixed8) + ", space " +
                                       std::to_string(record->space) + ", type " + std::to_string(record->type) +
                                       "; wanted: 2 <= fixed8 <= size8, space 1 to 255, type 1 to 63");
    }
    auto writer = thread_writer(self);
    if (!writer) return fail(writer.error());
    const uint32_t bytes = SONDE_RECORD_BYTES(record);
    sonde_writer_t &place = **writer;
    void *const room =
        static_cast<uint64_t>(place.limit - place.cursor) >= bytes ? place.cursor : reserve(&place, bytes);
    if (room != nullptr) {
      std::memcpy(room, record, bytes);
      sonde_commit(&place, bytes);
    } else {
      return fail(SONDE_E_FULL, "capture.emit: no room, or the session does not run");
    }
    return SONDE_OK;
  });
}

sonde_status capture_demand(sonde_session_t *session, uint32_t space, const uint64_t **out) {
  if (out == nullptr) return no_out("capture.demand");
  if (space == 0 || space >= SONDE_SPACE_COUNT) return fail(SONDE_E_RANGE, "capture.demand: spaces are 1 to 255");
  return with_session(session, [&](Session &self) {
    *out = self.demand().word(space);
    return SONDE_OK;
  });
}

sonde_status capture_level(sonde_session_t *session, uint32_t space, uint32_t type, uint32_t *out) {
  if (out == nullptr) return no_out("capture.level");
  if (space == 0 || space >= SONDE_SPACE_COUNT || type == 0 || type >= SONDE_TYPE_COUNT) {
    return fail(SONDE_E_RANGE, "capture.level: spaces are 1 to 255, types 1 to 63");
  }
  return with_session(session, [&](Session &self) {
    *out = self.demand().level(space, type);
    return SONDE_OK;
  });
}

sonde_status capture_intern(const char *text, uint64_t bytes, sonde_string_t *out) {
  if (out == nullptr) return no_out("capture.intern");
  if (text == nullptr && bytes != 0) return fail(SONDE_E_INVALID, "capture.intern: text is NULL");
  return at_boundary([&] {
    const std::string_view view =
        text == nullptr ? std::string_view() : std::string_view(text, bytes == UINT64_MAX ? std::strlen(text) : bytes);
    *out = strings().intern(view);
    return SONDE_OK;
  });
}

sonde_status capture_text(sonde_session_t *session, uint32_t source, sonde_string_t id, const char **out) {
  if (out == nullptr) return no_out("capture.text");
  *out = "";
  return with_session(session, [&](Session &self) -> sonde_status {
    const char *const text = self.text(source, id);
    if (text == nullptr) {
      return fail(SONDE_E_NOT_FOUND, "source " + std::to_string(source) + " has no string " + std::to_string(id));
    }
    *out = text;
    return SONDE_OK;
  });
}

sonde_status capture_register_space(const sonde_schema_t *schema, uint32_t *out) {
  if (schema == nullptr || out == nullptr) return no_out("capture.register_space");
  if (schema->struct_size < SONDE_NEED(sonde_schema_t, type_stride))
    return fail(SONDE_E_INVALID, "capture.register_space: struct_size is too small");
  return at_boundary([&] { return give(register_space(*schema), out); });
}

sonde_status capture_find_space(const char *name, uint32_t *out) {
  if (name == nullptr || out == nullptr) return no_out("capture.find_space");
  return at_boundary([&] { return give(find_space(name), out); });
}

sonde_status capture_schema(uint32_t space, const sonde_schema_t **out) {
  if (out == nullptr) return no_out("capture.schema");
  *out = space_schema(space);
  return *out != nullptr ? SONDE_OK : fail(SONDE_E_NOT_FOUND, "no space has the number " + std::to_string(space));
}

sonde_status capture_open_stream(sonde_session_t *session, const char *name, uint32_t clock, uint64_t *out) {
  if (out == nullptr) return no_out("capture.open_stream");
  return with_session(session, [&](Session &self) { return give(self.open_port_stream(name, clock), out); });
}

sonde_status capture_acquire(sonde_session_t *session, uint64_t, uint64_t bytes, uint8_t **out) {
  if (out == nullptr) return no_out("capture.acquire");
  *out = nullptr;
  return with_session(session, [&](Session &self) -> sonde_status {
    if (bytes > self.pool().cap() / 2)
      return fail(SONDE_E_RANGE, "capture.acquire: more than half the session's memory cap");
    BufferRef buffer = self.pool().acquire(bytes, 1'000'000'000);
    if (!buffer) return fail(SONDE_E_FULL, "capture.acquire: the session's memory cap is reached");
    *out = buffer.release()->data();
    return SONDE_OK;
  });
}

// The buffer whose data begins at `data`.
BufferRef adopt(uint8_t *data) { return BufferRef(reinterpret_cast<Buffer *>(data - Buffer::kHeaderBytes)); }

sonde_status capture_submit(sonde_session_t *session, uint64_t stream, uint8_t *buffer, uint64_t bytes,
                            uint64_t watermark) {
  if (buffer == nullptr) return fail(SONDE_E_INVALID, "capture.submit: buffer is NULL");
  return with_session(session,
                      [&](Session &self) { return status_of(self.submit(stream, adopt(buffer), bytes, watermark)); });
}

sonde_status capture_discard(sonde_session_t *session, uint8_t *buffer) {
  if (buffer == nullptr) return fail(SONDE_E_INVALID, "capture.discard: buffer is NULL");
  return with_session(session, [&](Session &) {
    adopt(buffer).reset();
    return SONDE_OK;
  });
}

sonde_status capture_close_stream(sonde_session_t *session, uint64_t stream) {
  return with_session(session, [&](Session &self) { return status_of(self.close_port_stream(stream)); });
}

sonde_status capture_pair_clock(sonde_session_t *session, uint32_t clock, uint64_t stamp, uint64_t reading,
                                uint64_t uncertainty) {
  return with_session(session,
                      [&](Session &self) { return status_of(self.pair_clock(clock, stamp, reading, uncertainty)); });
}

sonde_status capture_clock(sonde_session_t *session, uint32_t clock, sonde_clock_t *out) {
  if (out == nullptr) return no_out("capture.clock");
  return with_session(session, [&](Session &self) { return give(self.clock(clock), out); });
}

sonde_status capture_lose(sonde_session_t *session, uint64_t stream, uint32_t cause, uint64_t records, uint64_t bytes) {
  return with_session(session, [&](Session &self) {
    self.ledger().add(0, stream, cause, 0, records, bytes);
    return SONDE_OK;
  });
}

sonde_status capture_note(sonde_session_t *session, uint32_t severity, const char *origin, const char *text) {
  if (origin == nullptr || text == nullptr) return fail(SONDE_E_INVALID, "capture.note: origin or text is NULL");
  return with_session(session, [&](Session &self) {
    self.note(severity, origin, text);
    return SONDE_OK;
  });
}

sonde_status capture_watch_demand(sonde_session_t *session, void (*changed)(void *), void *user,
                                  sonde_drop_user_t drop_user) {
  if (changed == nullptr) return fail(SONDE_E_INVALID, "capture.watch_demand: changed is NULL");
  return with_session(session, [&](Session &self) {
    self.watch_demand([changed, user] { changed(user); },
                      [drop_user, user] {
                        if (drop_user != nullptr) drop_user(user);
                      });
    return SONDE_OK;
  });
}

const sonde_capture_service_t kCapture = {sizeof(sonde_capture_service_t),
                                          0,
                                          capture_writer,
                                          capture_reserve,
                                          capture_emit,
                                          capture_demand,
                                          capture_level,
                                          capture_intern,
                                          capture_text,
                                          capture_register_space,
                                          capture_find_space,
                                          capture_schema,
                                          capture_open_stream,
                                          capture_acquire,
                                          capture_submit,
                                          capture_discard,
                                          capture_close_stream,
                                          capture_pair_clock,
                                          capture_clock,
                                          capture_lose,
                                          capture_note,
                                          enter_host,
                                          leave_host,
                                          inside_host,
                                          capture_watch_demand};

// sonde.delivery/1

sonde_status delivery_subscribe(sonde_session_t *session, const sonde_subscription_t *subscription, uint64_t *out) {
  if (subscription == nullptr || out == nullptr) return no_out("delivery.subscribe");
  if (subscription->struct_size < SONDE_NEED(sonde_subscription_t, drop_user))
    return fail(SONDE_E_INVALID, "delivery.subscribe: struct_size is too small");
  return with_session(session, [&](Session &self) { return give(self.subscribe(*subscription), out); });
}

sonde_status delivery_unsubscribe(sonde_session_t *session, uint64_t subscription) {
  return with_session(session, [&](Session &self) { return status_of(self.unsubscribe(subscription)); });
}

sonde_status delivery_status(sonde_session_t *session, uint64_t subscription, sonde_subscription_status_t *out) {
  if (out == nullptr) return no_out("delivery.status");
  return with_session(session, [&](Session &self) { return give(self.subscription_status(subscription), out); });
}

sonde_status delivery_retain(const sonde_batch_t *batch, const sonde_batch_t **out) {
  if (batch == nullptr || out == nullptr) return no_out("delivery.retain");
  Batch *const shared = reinterpret_cast<const DeliveredBatch *>(batch)->shared;
  shared->references.fetch_add(1, std::memory_order_relaxed);
  *out = &shared->view;
  return SONDE_OK;
}

sonde_status delivery_release(const sonde_batch_t *kept) {
  if (kept == nullptr) return fail(SONDE_E_INVALID, "delivery.release: batch is NULL");
  static_assert(offsetof(Batch, view) == 0);
  BatchRef(reinterpret_cast<Batch *>(const_cast<sonde_batch_t *>(kept)));
  return SONDE_OK;
}

const sonde_delivery_service_t kDelivery = {sizeof(sonde_delivery_service_t),
                                            0,
                                            delivery_subscribe,
                                            delivery_unsubscribe,
                                            delivery_status,
                                            delivery_retain,
                                            delivery_release};

}  // namespace

void install() {
  static const bool done = [] {
    register_builtin_spaces();
    install_fork_handlers();
    add_service(SONDE_SESSION_SERVICE, &kSession);
    add_service(SONDE_CAPTURE_SERVICE, &kCapture);
    add_service(SONDE_DELIVERY_SERVICE, &kDelivery);
    add_service(SONDE_CLAIM_SERVICE, &claim_service());
    add_service(SONDE_RANGES_SERVICE, &ranges_service());
    install_merge();
    install_columns();
    return true;
  }();
  (void)done;
}

}  // namespace sonde::core
