// What an event costs the thread that emits it.
//
// The bar: one pinned producer, 16-byte payload, 10^7 events, an 8 MiB ring, a counting subscriber, no drops; median
// of 11 runs interleaved with the bare rdtsc loop, whose cost is the floor that no stamped event goes under. The same
// process measures LTTng-UST with the same payload where it is installed (emit_lttng.cpp): run tests/bench/emit.sh,
// which also starts its session daemon. Other modes report what they accepted and dropped, since a full ring looks
// fast.
#include <pthread.h>
#include <sched.h>
#include <sonde/capture.h>
#include <sonde/delivery.h>
#include <sonde/host.h>
#include <sonde/session.h>
#include <sonde/store.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "emit_lttng.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  sonde_record_t header;
  uint64_t first;
  uint64_t second;
};

template <typename Service>
const Service &get(const char *id) {
  const void *table = nullptr;
  if (sonde_host()->get_service(id, sizeof(Service), &table) != SONDE_OK) {
    std::fprintf(stderr, "%s: %s\n", id, sonde_host()->last_error());
    std::exit(1);
  }
  return *static_cast<const Service *>(table);
}

const sonde_session_service_t &sessions() { return get<sonde_session_service_t>(SONDE_SESSION_SERVICE); }
const sonde_capture_service_t &capture() { return get<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE); }
const sonde_delivery_service_t &delivery() { return get<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE); }

void check(sonde_status status, const char *what) {
  if (status < 0) {
    std::fprintf(stderr, "%s: %s\n", what, sonde_host()->last_error());
    std::exit(1);
  }
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

void unpin() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned core = 0; core < std::thread::hardware_concurrency() && core < CPU_SETSIZE; ++core) CPU_SET(core, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

double elapsed_ns(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

uint32_t space() {
  static const uint32_t number = [] {
    static const sonde_field_t fields[] = {SONDE_FIELD(Event, first, SONDE_KIND_UINT, "", ""),
                                           SONDE_FIELD(Event, second, SONDE_KIND_UINT, "", "")};
    static const sonde_record_type_t types[] = {{1, sizeof(Event), "event", "", fields, 2, sizeof(sonde_field_t)}};
    const sonde_schema_t schema = {sizeof(schema), 1, "bench.emit", "", types, sizeof(sonde_record_type_t), 0};
    uint32_t made = 0;
    check(capture().register_space(&schema, &made), "register_space");
    return made;
  }();
  return number;
}

struct Counter {
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> bytes{0};
};

struct Figures {
  double ns_per_event = 0;
  uint64_t accepted = 0;
  uint64_t dropped = 0;
  uint64_t delivered = 0;
  uint64_t bytes = 0;              // delivered, or of the capture file
  uint64_t ledger = 0;             // records that the loss ledger counts, whoever lost them
  double helper_ns_per_event = 0;  // CPU time of every thread but the producers
};

struct Mode {
  uint32_t policy = SONDE_POLICY_DROP;
  uint64_t ring_bytes = 8 << 20;
  int subscribers = 1;
  int producers = 1;
  uint64_t events = 10'000'000;
  bool stamp = true;
  bool to_disk = false;  // a recording to a file takes the place of the subscribers
};

double cpu_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

uint64_t counted_losses(sonde_session_t *session) {
  uint64_t count = 0;
  check(sessions().losses(session, nullptr, 0, &count), "losses");
  std::vector<sonde_loss_t> rows(count);
  check(sessions().losses(session, rows.data(), rows.size(), &count), "losses");
  uint64_t records = 0;
  for (const sonde_loss_t &row : rows) records += row.records;
  return records;
}

// Records and bytes of a finished capture file.
void measure_file(const std::string &path, Figures &figures) {
  const auto &store = get<sonde_store_service_t>(SONDE_STORE_SERVICE);
  sonde_capture_t *file = nullptr;
  check(store.open(path.c_str(), &file), "open capture");
  sonde_source_info_t info{};
  info.struct_size = sizeof(info);
  check(store.source_at(file, 0, &info), "source_at");
  figures.delivered = info.records;
  figures.bytes = info.file_bytes;
  check(store.close(file), "close capture");
}

// The loop that is measured; kept out of line so that every mode runs the same code.
__attribute__((noinline)) uint64_t emit_many(const uint64_t *demand, sonde_writer_t *writer, uint32_t number,
                                             uint64_t events, bool stamp) {
  const sonde_capture_service_t &table = capture();
  uint64_t taken = 0;
  for (uint64_t i = 0; i < events; ++i) {
    if (!sonde_wants(demand, 1)) continue;
    auto *const event = static_cast<Event *>(sonde_reserve(&table, writer, sizeof(Event)));
    if (event == nullptr) continue;
    event->header = {sizeof(Event) / 8, sizeof(Event) / 8, static_cast<uint16_t>(number), 1, stamp ? sonde_stamp() : i};
    event->first = i;
    event->second = ~i;
    sonde_commit(writer, sizeof(Event));
    ++taken;
  }
  return taken;
}

Figures run(const Mode &mode) {
  sonde_session_options_t options{};
  options.struct_size = sizeof(options);
  options.policy = mode.policy;
  options.ring_bytes = mode.ring_bytes;
  options.memory_cap = 256 << 20;
  sonde_session_t *session = nullptr;
  check(sessions().open(&options, &session), "open");
  std::vector<Counter> counters(mode.to_disk ? 0 : static_cast<size_t>(mode.subscribers));
  for (Counter &counter : counters) {
    const sonde_interest_t interest = {space(), SONDE_LEVEL_RECORDS, UINT64_MAX};
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof(subscription);
    subscription.queue_bytes = 64 << 20;
    subscription.name = "count";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = [](void *user, const sonde_batch_t *batch) -> sonde_status {
      static_cast<Counter *>(user)->records += batch->count;
      static_cast<Counter *>(user)->bytes += batch->bytes;
      return SONDE_OK;
    };
    subscription.user = &counter;
    uint64_t id = 0;
    check(delivery().subscribe(session, &subscription, &id), "subscribe");
  }
  const std::string path =
      (std::filesystem::temp_directory_path() / ("emit-" + std::to_string(::getpid()) + ".sonde")).string();
  sonde_recording_t *recording = nullptr;
  if (mode.to_disk) {
    const auto &store = get<sonde_store_service_t>(SONDE_STORE_SERVICE);
    check(store.record(session, path.c_str(), nullptr, nullptr, &recording), "record");
  }
  check(sessions().start(session), "start");
  const uint64_t *demand = nullptr;
  check(capture().demand(session, space(), &demand), "demand");
  const double cpu_begin = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<double> producer_cpu(static_cast<size_t>(mode.producers));
  std::vector<double> times(static_cast<size_t>(mode.producers));
  std::vector<uint64_t> taken(static_cast<size_t>(mode.producers));
  const uint64_t each = mode.events / static_cast<uint64_t>(mode.producers);
  const auto produce = [&](int index) {
    if (mode.producers == 1) {
      pin(0);
    } else {
      unpin();
    }
    sonde_writer_t *writer = nullptr;
    check(capture().writer(session, &writer), "writer");
    emit_many(demand, writer, space(), 1000, mode.stamp);  // maps the first pages
    const auto begin = Clock::now();
    taken[static_cast<size_t>(index)] = emit_many(demand, writer, space(), each, mode.stamp) + 1000;
    times[static_cast<size_t>(index)] = elapsed_ns(begin) / static_cast<double>(each);
    producer_cpu[static_cast<size_t>(index)] = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < mode.producers; ++i) threads.emplace_back(produce, i);
  for (std::thread &thread : threads) thread.join();
  check(sessions().stop(session, 10'000'000'000), "stop");
  if (mode.to_disk) check(get<sonde_store_service_t>(SONDE_STORE_SERVICE).finish(recording), "finish");
  double helpers = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
  for (const double own : producer_cpu) helpers -= own;
  Figures figures;
  figures.ns_per_event = median(times);
  for (const uint64_t count : taken) figures.accepted += count;
  figures.dropped = (each + 1000) * static_cast<uint64_t>(mode.producers) - figures.accepted;
  figures.helper_ns_per_event = helpers / static_cast<double>(mode.events);
  if (!counters.empty()) {
    figures.delivered = counters[0].records;
    figures.bytes = counters[0].bytes;
  }
  figures.ledger = counted_losses(session);
  check(sessions().close(session), "close");
  if (mode.to_disk) {
    measure_file(path, figures);
    std::filesystem::remove(path);
  }
  return figures;
}

double rdtsc_loop(uint64_t events) {
  double result = 0;
  std::thread([&] {
    pin(0);
    uint64_t sum = 0;
    const auto begin = Clock::now();
    for (uint64_t i = 0; i < events; ++i) {
      sum += sonde_stamp();
      __asm__ volatile("" : "+r"(sum));
    }
    result = elapsed_ns(begin) / static_cast<double>(events);
  }).join();
  return result;
}

double disabled_site(uint64_t events) {
  static const uint64_t nothing = 0;
  const uint64_t *volatile hidden = &nothing;
  const uint64_t *const demand = hidden;
  double result = 0;
  std::thread([&] {
    pin(0);
    uint64_t taken = 0;
    const auto empty_begin = Clock::now();
    for (uint64_t i = 0; i < events; ++i) __asm__ volatile("" : "+r"(taken));
    const double empty = elapsed_ns(empty_begin);
    const auto begin = Clock::now();
    for (uint64_t i = 0; i < events; ++i) {
      if (sonde_wants(demand, 1)) ++taken;
      __asm__ volatile("" : "+r"(taken));
    }
    result = (elapsed_ns(begin) - empty) / static_cast<double>(events);
  }).join();
  return result;
}

// Delivery to 8 subscribers, by batch and by a call for each event; both walk records that are in memory.
struct Delivered {
  double by_batch;
  double by_event;
};

Delivered deliver_to_eight(uint64_t events) {
  std::vector<Event> records(4096);
  for (Event &record : records) record.header = {4, 4, static_cast<uint16_t>(space()), 1, 1};
  struct Subscriber {
    uint64_t sum = 0;
    void (*on_event)(Subscriber &, const Event &) = nullptr;
    void (*on_batch)(Subscriber &, const Event *, size_t) = nullptr;
  };
  std::vector<Subscriber> subscribers(8);
  for (Subscriber &subscriber : subscribers) {
    subscriber.on_event = [](Subscriber &self, const Event &event) { self.sum += event.first; };
    subscriber.on_batch = [](Subscriber &self, const Event *events_of, size_t count) {
      for (size_t i = 0; i < count; ++i) self.sum += events_of[i].first;
    };
    __asm__ volatile("" : : "r"(&subscriber) : "memory");
  }
  const uint64_t rounds = events / records.size();
  auto begin = Clock::now();
  for (uint64_t round = 0; round < rounds; ++round) {
    for (const Event &event : records) {
      for (Subscriber &subscriber : subscribers) subscriber.on_event(subscriber, event);
    }
  }
  const double by_event = elapsed_ns(begin) / static_cast<double>(rounds * records.size());
  begin = Clock::now();
  for (uint64_t round = 0; round < rounds; ++round) {
    for (Subscriber &subscriber : subscribers) subscriber.on_batch(subscriber, records.data(), records.size());
  }
  const double by_batch = elapsed_ns(begin) / static_cast<double>(rounds * records.size());
  return {by_batch, by_event};
}

// One event each 100 us: what an emit costs when nothing of it is in the cache.
double cold_emit(int count) {
  sonde_session_options_t options{};
  options.struct_size = sizeof(options);
  sonde_session_t *session = nullptr;
  check(sessions().open(&options, &session), "open");
  Counter counter;
  const sonde_interest_t interest = {space(), SONDE_LEVEL_RECORDS, UINT64_MAX};
  sonde_subscription_t subscription{};
  subscription.struct_size = sizeof(subscription);
  subscription.interests = &interest;
  subscription.interest_count = 1;
  subscription.on_batch = [](void *, const sonde_batch_t *) -> sonde_status { return SONDE_OK; };
  uint64_t id = 0;
  check(delivery().subscribe(session, &subscription, &id), "subscribe");
  check(sessions().start(session), "start");
  const uint64_t *demand = nullptr;
  check(capture().demand(session, space(), &demand), "demand");
  sonde_writer_t *writer = nullptr;
  check(capture().writer(session, &writer), "writer");
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const timespec nap{0, 100'000};
    ::nanosleep(&nap, nullptr);
    const uint64_t begin = sonde_stamp();
    emit_many(demand, writer, space(), 1, true);
    const uint64_t end = sonde_stamp();
    sonde_clock_t clock{};
    check(capture().clock(session, SONDE_CLOCK_STAMP, &clock), "clock");
    times.push_back(static_cast<double>(sonde_clock_duration_ns(&clock, begin, end)));
  }
  check(sessions().close(session), "close");
  return median(times);
}

void print(const char *name, const Figures &figures, double floor) {
  std::printf(
      "%-44s %8.2f ns/event %8.2f above rdtsc  accepted %9llu  dropped %8llu  in the ledger %8llu  delivered "
      "%9llu, %7.1f MB  helpers %6.2f ns/event\n",
      name, figures.ns_per_event, figures.ns_per_event - floor, static_cast<unsigned long long>(figures.accepted),
      static_cast<unsigned long long>(figures.dropped), static_cast<unsigned long long>(figures.ledger),
      static_cast<unsigned long long>(figures.delivered), static_cast<double>(figures.bytes) / 1e6,
      figures.helper_ns_per_event);
}

}  // namespace

int main(int argc, char **argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 11;
  const uint64_t events = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000'000;
  pin(1);  // the session's threads inherit it: the producer has its processor for itself
  std::vector<double> floors, stamped, lttng;
  Figures last;
  uint64_t dropped = 0;
  uint64_t ledger = 0;
  int whole = 0;  // runs that lost nothing
  for (int i = 0; i < runs; ++i) {
    floors.push_back(rdtsc_loop(events));
    Mode mode;
    mode.events = events;
    last = run(mode);
    dropped += last.dropped;
    ledger += last.ledger;
    whole += last.ledger == 0 ? 1 : 0;
    stamped.push_back(last.ns_per_event);
    std::thread([&] {
      pin(0);
      lttng.push_back(lttng_events(events / 10));
    }).join();
  }
  const double floor = median(floors);
  const double ours = median(stamped);
  const double theirs = median(lttng);
  std::printf("one pinned producer, 16-byte payload, %llu events, 8 MiB ring, median of %d interleaved runs\n",
              static_cast<unsigned long long>(events), runs);
  std::printf("%-44s %8.2f ns/event\n", "rdtsc loop (floor)", floor);
  last.ns_per_event = ours;
  last.dropped = dropped;
  last.ledger = ledger;
  print("sonde, counting subscriber", last, floor);
  std::printf("%-44s %8d of %d (the drops above are those of all runs)\n", "  runs without a drop", whole, runs);
  if (lttng_enabled()) {
    std::printf("%-44s %8.2f ns/event   %.1f times sonde\n", lttng_mode(), theirs, theirs / ours);
  } else {
    std::printf("LTTng-UST: %s\n", lttng_mode());
  }
  std::printf("%-44s %8.2f ns/event\n", "disabled site", disabled_site(events * 5));

  std::printf("\nother modes, one run each\n");
  Mode mode;
  mode.events = events;
  mode.stamp = false;
  print("no stamp, counting subscriber", run(mode), floor);
  mode = {};
  mode.events = events;
  mode.policy = SONDE_POLICY_OVERWRITE;
  print("overwrite (flight recorder), 8 MiB", run(mode), floor);
  mode = {};
  mode.events = events;
  mode.ring_bytes = 1 << 20;
  print("1 MiB ring (the default)", run(mode), floor);
  for (const int producers : {2, 4}) {
    mode = {};
    mode.events = events;
    mode.producers = producers;
    print((std::to_string(producers) + " producers").c_str(), run(mode), floor);
  }
  mode = {};
  mode.events = events;
  mode.subscribers = 8;
  print("8 subscribers", run(mode), floor);
  mode = {};
  mode.events = events;
  mode.to_disk = true;
  print("to disk: a capture file", run(mode), floor);
  mode.policy = SONDE_POLICY_STALL;
  print("to disk, the producer waits for room", run(mode), floor);
  std::printf("%-44s %8.2f ns/event\n", "cold: one event each 100 us", cold_emit(2000));
  const Delivered delivered = deliver_to_eight(events * 4);
  std::printf("%-44s %8.2f by batch, %.2f by a call for each event: %.2f of it\n",
              "delivery to 8 subscribers, ns/event", delivered.by_batch, delivered.by_event,
              delivered.by_batch / delivered.by_event);
  return 0;
}
