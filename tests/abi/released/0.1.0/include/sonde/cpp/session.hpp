// Sessions, subscriptions, writers. See sonde/sonde.hpp.
#ifndef SONDE_CPP_SESSION_HPP
#define SONDE_CPP_SESSION_HPP

#include <sonde/cpp/host.hpp>
#include <sonde/cpp/records.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sonde {

// A running subscription; ends with the object. It must not outlive its session.
class Subscription {
 public:
  Subscription() = default;
  Subscription(Host host, sonde_session_t *session, uint64_t id) : host_(host), session_(session), id_(id) {}
  Subscription(Subscription &&other) noexcept
      : host_(other.host_), session_(std::exchange(other.session_, nullptr)), id_(other.id_) {}
  Subscription &operator=(Subscription &&other) noexcept {
    if (this != &other) {
      reset();
      host_ = other.host_;
      session_ = std::exchange(other.session_, nullptr);
      id_ = other.id_;
    }
    return *this;
  }
  ~Subscription() { reset(); }

  uint64_t id() const { return id_; }

  sonde_subscription_status_t status() const {
    sonde_subscription_status_t status{};
    status.struct_size = sizeof(status);
    host_.check(host_.service<sonde_delivery_service_t>().status(session_, id_, &status));
    return status;
  }

  // No call of the handler after it returns. [any]
  void reset() noexcept {
    if (session_ == nullptr) return;
    const void *table = nullptr;
    if (host_.table()->get_service(SONDE_DELIVERY_SERVICE, ServiceTraits<sonde_delivery_service_t>::min_size, &table) ==
        SONDE_OK) {
      // A session that stopped has ended the subscription already; that is no error here.
      static_cast<const sonde_delivery_service_t *>(table)->unsubscribe(session_, id_);
    }
    session_ = nullptr;
  }

  // Leaves the subscription to its session, which ends it at stop.
  void release() noexcept { session_ = nullptr; }

 private:
  Host host_{nullptr};
  sonde_session_t *session_ = nullptr;
  uint64_t id_ = 0;
};

// This thread's way to emit. Fetch one for each thread and session. [app-thread], the one that fetched it
class Writer {
 public:
  Writer(const sonde_capture_service_t &capture, sonde_writer_t *writer) : capture_(&capture), writer_(writer) {}

  // Fills the header and emits; false when it was dropped, which is counted.
  template <typename T>
  bool emit(uint32_t space, uint32_t type, T &record, uint64_t stamp = sonde_stamp()) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0 && offsetof(T, header) == 0);
    SONDE_RECORD_INIT(&record, space, type, stamp);
    return sonde_write(capture_, writer_, &record, sizeof(T)) != 0;
  }

  // Emits a whole record, header filled, variable data included.
  bool emit(const sonde_record_t *record) {
    return sonde_write(capture_, writer_, record, SONDE_RECORD_BYTES(record)) != 0;
  }

 private:
  const sonde_capture_service_t *capture_;
  sonde_writer_t *writer_;
};

// Whether somebody wants the types of a space: a load and a branch. [any]
class Demand {
 public:
  explicit Demand(const uint64_t *word) : word_(word) {}
  bool wants(uint32_t type) const { return sonde_wants(word_, type) != 0; }

 private:
  const uint64_t *word_;
};

// A session, owned (open) or somebody else's (borrow). [control] where nothing else is said
class Session {
 public:
  static Session open(Host host, const sonde_session_options_t *options = nullptr) {
    sonde_session_t *session = nullptr;
    host.check(host.service<sonde_session_service_t>().open(options, &session));
    return Session(host, session, true);
  }
  static Session borrow(Host host, sonde_session_t *session) { return Session(host, session, false); }

  Session(Session &&other) noexcept
      : host_(other.host_), session_(std::exchange(other.session_, nullptr)), owned_(other.owned_) {}
  Session &operator=(Session &&other) noexcept {
    if (this != &other) {
      close();
      host_ = other.host_;
      session_ = std::exchange(other.session_, nullptr);
      owned_ = other.owned_;
    }
    return *this;
  }
  ~Session() { close(); }

  const Host &host() const { return host_; }
  sonde_session_t *get() const { return session_; }

  void start() { host_.check(service().start(session_)); }
  void flush(uint64_t deadline_ns = 0) { host_.check(service().flush(session_, deadline_ns)); }
  void stop(uint64_t deadline_ns = 0) { host_.check(service().stop(session_, deadline_ns)); }

  sonde_session_status_t status() const {
    sonde_session_status_t status{};
    status.struct_size = sizeof(status);
    host_.check(service().status(session_, &status));
    return status;
  }

  std::vector<sonde_loss_t> losses() const {
    uint64_t count = 0;
    host_.check(service().losses(session_, nullptr, 0, &count));
    std::vector<sonde_loss_t> rows(count);
    if (count != 0) host_.check(service().losses(session_, rows.data(), rows.size(), &count));
    if (count < rows.size()) rows.resize(count);
    return rows;
  }

  // Calls `handler` with every batch on the subscription's own thread. What it throws is counted as an error; after
  // 16 in a row the subscription ends. `options` sets the queue; its other members are filled here.
  template <typename Handler>
  Subscription subscribe(const char *name, const std::vector<sonde_interest_t> &interests, Handler handler,
                         std::function<void()> on_end = {}, sonde_subscription_t options = {}) {
    struct Registration {
      const sonde_host_t *host;
      Handler handler;
      std::function<void()> on_end;
    };
    auto registration =
        std::make_unique<Registration>(Registration{host_.table(), std::move(handler), std::move(on_end)});
    options.struct_size = sizeof(options);
    options.name = name;
    options.interests = interests.data();
    options.interest_count = static_cast<uint32_t>(interests.size());
    options.on_batch = [](void *user, const sonde_batch_t *batch) -> sonde_status {
      auto *const self = static_cast<Registration *>(user);
      return guarded(self->host, [self, batch] { return self->handler(Batch(batch)); });
    };
    options.on_end = [](void *user) {
      auto *const self = static_cast<Registration *>(user);
      guarded(self->host, [self] {
        if (self->on_end) self->on_end();
      });
    };
    options.user = registration.get();
    options.drop_user = [](void *user) { delete static_cast<Registration *>(user); };
    uint64_t id = 0;
    host_.check(host_.service<sonde_delivery_service_t>().subscribe(session_, &options, &id));
    registration.release();
    return Subscription(host_, session_, id);
  }

  // This thread's writer. [any]
  Writer writer() const {
    sonde_writer_t *writer = nullptr;
    host_.check(capture().writer(session_, &writer));
    return Writer(capture(), writer);
  }

  // [any]
  Demand demand(uint32_t space) const {
    const uint64_t *word = nullptr;
    host_.check(capture().demand(session_, space, &word));
    return Demand(word);
  }

  // [any]
  sonde_string_t intern(const std::string &text) const {
    sonde_string_t id = 0;
    host_.check(capture().intern(text.data(), text.size(), &id));
    return id;
  }

  // Text of a string of `source`; "" when it is unknown. Valid until the session is closed. [any]
  const char *text(uint32_t source, sonde_string_t id) const {
    const char *text = nullptr;
    if (id == 0 || capture().text(session_, source, id, &text) != SONDE_OK || text == nullptr) return "";
    return text;
  }

 private:
  Session(Host host, sonde_session_t *session, bool owned) : host_(host), session_(session), owned_(owned) {}

  const sonde_session_service_t &service() const { return host_.service<sonde_session_service_t>(); }
  const sonde_capture_service_t &capture() const { return host_.service<sonde_capture_service_t>(); }
  void close() noexcept {
    if (session_ != nullptr && owned_) guarded(host_.table(), [this] { return service().close(session_); });
    session_ = nullptr;
  }

  Host host_;
  sonde_session_t *session_;
  bool owned_;
};

}  // namespace sonde

#endif
