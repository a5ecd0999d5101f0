// NVTX through the port's entry: a program's tables are those of this test, or those of the real header-only NVTX in
// a program of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include <sonde/spaces/framework.h>
#include <sonde/spaces/object.h>

#include "common/services.h"
#include "fake_host.h"
#include "nvtx.h"
#include "port.h"

namespace sonde::cuda::nvtx {
namespace {

using test::text_of;

// The function pointers of one NVTX instance, as a program's header keeps them.
constexpr uint32_t kSlots = 16;
std::map<uint32_t, std::vector<Function>> modules;
std::map<uint32_t, std::vector<Function *>> tables;
uint32_t table_size = kSlots;

int get_module_function_table(uint32_t module, FunctionTable *table, uint32_t *size) {
  const auto found = tables.find(module);
  if (found == tables.end()) return 0;
  *table = found->second.data();
  *size = table_size;
  return 1;
}

const ExportTableCallbacks callbacks = {sizeof(ExportTableCallbacks), get_module_function_table};
const void *get_export_table(uint32_t table) { return table == kTableCallbacks ? &callbacks : nullptr; }

void make_tables(std::initializer_list<uint32_t> present) {
  modules.clear();
  tables.clear();
  for (const uint32_t module : present) {
    modules[module].assign(kSlots, nullptr);
    for (Function &slot : modules[module]) tables[module].push_back(&slot);
    tables[module][0] = nullptr;  // id 0 is no function
  }
}

template <typename Type>
Type *function(uint32_t module, uint32_t id) {
  return reinterpret_cast<Type *>(modules.at(module).at(id));
}

class Nvtx : public ::testing::Test {
 protected:
  void SetUp() override {
    services() = {test::fake_host(), test::fake_capture(), nullptr};
    table_size = kSlots;
    make_tables({kModuleCore, kModuleCore2, kModuleCuda, kModuleCudaRuntime});
    ASSERT_EQ(inject(get_export_table), SONDE_OK);
    session_.want_all(SONDE_SPACE_FRAMEWORK);
    session_.want(SONDE_SPACE_OBJECT, SONDE_OBJECT_NAME);
    ASSERT_EQ(port_.start(), SONDE_OK);
  }
  void TearDown() override { EXPECT_EQ(port_.stop(), SONDE_OK); }

  std::vector<sonde_framework_scope_t> scopes(uint32_t type) {
    return session_.emitted_of<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, type);
  }
  std::vector<sonde_framework_scope_end_t> ends(uint32_t type) {
    return session_.emitted_of<sonde_framework_scope_end_t>(SONDE_SPACE_FRAMEWORK, type);
  }
  std::vector<sonde_object_name_t> names() {
    return session_.emitted_of<sonde_object_name_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_NAME);
  }

  static int push(const char *name) { return function<int(const char *)>(kModuleCore, core::kRangePushA)(name); }
  static int pop() { return function<int()>(kModuleCore, core::kRangePop)(); }

  sonde_session_t session_;
  Port port_{&session_, PortOptions()};
};

EventAttributes ascii(const char *message) {
  EventAttributes attributes = {};
  attributes.version = 2;
  attributes.size = sizeof(attributes);
  attributes.message_type = kMessageAscii;
  attributes.message.ascii = message;
  return attributes;
}

TEST_F(Nvtx, PushesAndPopsCarryTheirDepth) {
  EXPECT_EQ(push("outer"), 0);
  EXPECT_EQ(push("inner"), 1);
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop(), 0);
  const auto pushes = scopes(SONDE_FRAMEWORK_SCOPE_PUSH);
  ASSERT_EQ(pushes.size(), 2u);
  EXPECT_EQ(text_of(pushes[0].name), "outer");
  EXPECT_EQ(text_of(pushes[0].domain), "nvtx");
  EXPECT_EQ(pushes[0].thread, static_cast<uint64_t>(gettid()));
  EXPECT_EQ(pushes[0].payload_kind, 0u);
  EXPECT_LT(pushes[0].header.time, pushes[1].header.time);
  EXPECT_EQ(ends(SONDE_FRAMEWORK_SCOPE_POP).size(), 2u);
}

// A pop without a push is data.
TEST_F(Nvtx, APopTooManyIsNegativeAndRecorded) {
  EXPECT_EQ(push("a"), 0);
  EXPECT_EQ(pop(), 0);
  EXPECT_LT(pop(), 0);
  EXPECT_EQ(push("b"), 0);
  EXPECT_EQ(ends(SONDE_FRAMEWORK_SCOPE_POP).size(), 2u);
  EXPECT_EQ(pop(), 0);
}

TEST_F(Nvtx, AWideStringBecomesUtf8) {
  function<int(const wchar_t *)>(kModuleCore, core::kRangePushW)(L"a\u00e9\u20ac\U0001F600");
  const auto pushes = scopes(SONDE_FRAMEWORK_SCOPE_PUSH);
  ASSERT_EQ(pushes.size(), 1u);
  EXPECT_EQ(text_of(pushes[0].name), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  pop();
}

TEST(NvtxUtf8, ReplacesWhatIsNoCharacter) {
  const wchar_t surrogate[] = {static_cast<wchar_t>(0xD800), 0};
  const wchar_t beyond[] = {static_cast<wchar_t>(0x110000), 0};
  EXPECT_EQ(utf8(surrogate), "\xEF\xBF\xBD");
  EXPECT_EQ(utf8(beyond), "\xEF\xBF\xBD");
  EXPECT_EQ(utf8(L""), "");
}

TEST_F(Nvtx, AttributesKeepColorCategoryAndPayload) {
  function<void(uint32_t, const char *)>(kModuleCore, core::kNameCategoryA)(5, "phase");
  EventAttributes attributes = ascii("event");
  attributes.category = 5;
  attributes.color_type = kColorArgb;
  attributes.color = 0xFF112233;
  const auto mark = function<void(const EventAttributes *)>(kModuleCore, core::kMarkEx);
  attributes.payload_type = kPayloadUint64;
  attributes.payload.u64 = UINT64_MAX;
  mark(&attributes);
  attributes.payload_type = kPayloadInt32;
  attributes.payload.u64 = 0;
  attributes.payload.i32 = -7;
  mark(&attributes);
  attributes.payload_type = kPayloadFloat;
  attributes.payload.f32 = 0.5f;
  mark(&attributes);
  attributes.payload_type = kPayloadDouble;
  attributes.payload.f64 = 2.25;
  mark(&attributes);
  attributes.payload_type = 99;
  mark(&attributes);

  const auto marks = scopes(SONDE_FRAMEWORK_MARK);
  ASSERT_EQ(marks.size(), 5u);
  EXPECT_EQ(text_of(marks[0].category), "phase");
  EXPECT_EQ(marks[0].color, 0xFF112233u);
  EXPECT_EQ(marks[0].payload_kind, 1u);
  EXPECT_EQ(marks[0].payload, UINT64_MAX);
  EXPECT_EQ(marks[1].payload_kind, 2u);
  EXPECT_EQ(static_cast<int64_t>(marks[1].payload), -7);
  double value = 0;
  std::memcpy(&value, &marks[2].payload, sizeof(value));
  EXPECT_EQ(marks[2].payload_kind, 3u);
  EXPECT_EQ(value, 0.5);
  std::memcpy(&value, &marks[3].payload, sizeof(value));
  EXPECT_EQ(value, 2.25);
  EXPECT_EQ(marks[4].payload_kind, 0u);
}

// An older program's struct ends early; what lies behind it is not the attributes'.
TEST_F(Nvtx, AttributesOfAnOlderSizeAreNotReadPastTheirEnd) {
  EventAttributes attributes = ascii("beyond");
  attributes.category = 1;
  attributes.size = offsetof(EventAttributes, payload_type);
  attributes.color_type = kColorArgb;
  attributes.color = 7;
  attributes.payload_type = kPayloadUint64;
  attributes.payload.u64 = 9;
  function<void(const EventAttributes *)>(kModuleCore, core::kMarkEx)(&attributes);
  const auto marks = scopes(SONDE_FRAMEWORK_MARK);
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks[0].color, 7u);
  EXPECT_EQ(marks[0].payload_kind, 0u);
  EXPECT_EQ(text_of(marks[0].name), "");
}

TEST_F(Nvtx, ARangeMayEndOnAnotherThread) {
  const uint64_t id = function<uint64_t(const char *)>(kModuleCore, core::kRangeStartA)("crossing");
  const uint64_t other = function<uint64_t(const char *)>(kModuleCore, core::kRangeStartA)("staying");
  EXPECT_NE(id, 0u);
  EXPECT_NE(id, other);
  std::thread([&] { function<void(uint64_t)>(kModuleCore, core::kRangeEnd)(id); }).join();
  const auto starts = scopes(SONDE_FRAMEWORK_RANGE_START);
  const auto range_ends = ends(SONDE_FRAMEWORK_RANGE_END);
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(range_ends.size(), 1u);
  EXPECT_EQ(starts[0].scope, id);
  EXPECT_EQ(range_ends[0].scope, id);
  EXPECT_NE(starts[0].thread, range_ends[0].thread);
}

TEST_F(Nvtx, DomainsHaveTheirOwnDepthsCategoriesAndNames) {
  void *torch = function<void *(const char *)>(kModuleCore2, core2::kDomainCreateA)("torch");
  void *again = function<void *(const wchar_t *)>(kModuleCore2, core2::kDomainCreateW)(L"torch");
  void *other = function<void *(const char *)>(kModuleCore2, core2::kDomainCreateA)("other");
  EXPECT_EQ(torch, again);
  EXPECT_NE(torch, other);
  function<void(void *, uint32_t, const char *)>(kModuleCore2, core2::kDomainNameCategoryA)(torch, 5, "forward");
  const auto domain_push = function<int(void *, const EventAttributes *)>(kModuleCore2, core2::kDomainRangePushEx);
  const auto domain_pop = function<int(void *)>(kModuleCore2, core2::kDomainRangePop);
  EventAttributes attributes = ascii("layer");
  attributes.category = 5;
  EXPECT_EQ(push("default"), 0);
  EXPECT_EQ(domain_push(torch, &attributes), 0);
  EXPECT_EQ(domain_push(torch, &attributes), 1);
  EXPECT_EQ(domain_push(other, &attributes), 0);
  EXPECT_EQ(domain_pop(torch), 1);
  EXPECT_EQ(domain_pop(other), 0);
  EXPECT_EQ(domain_pop(torch), 0);
  EXPECT_EQ(pop(), 0);
  const auto pushes = scopes(SONDE_FRAMEWORK_SCOPE_PUSH);
  ASSERT_EQ(pushes.size(), 4u);
  EXPECT_EQ(text_of(pushes[1].domain), "nvtx:torch");
  EXPECT_EQ(text_of(pushes[1].category), "forward");
  EXPECT_EQ(text_of(pushes[3].domain), "nvtx:other");
  EXPECT_EQ(text_of(pushes[3].category), "");
  EXPECT_EQ(text_of(ends(SONDE_FRAMEWORK_SCOPE_POP)[1].domain), "nvtx:other");
}

TEST_F(Nvtx, ARegisteredStringNamesAnEvent) {
  void *domain = function<void *(const char *)>(kModuleCore2, core2::kDomainCreateA)("lib");
  const auto register_a = function<void *(void *, const char *)>(kModuleCore2, core2::kDomainRegisterStringA);
  const auto register_w = function<void *(void *, const wchar_t *)>(kModuleCore2, core2::kDomainRegisterStringW);
  EventAttributes attributes = ascii(nullptr);
  attributes.message_type = kMessageRegistered;
  attributes.message.registered = register_a(domain, "registered");
  EXPECT_EQ(attributes.message.registered, register_w(domain, L"registered"));
  function<void(void *, const EventAttributes *)>(kModuleCore2, core2::kDomainMarkEx)(domain, &attributes);
  const auto start = function<uint64_t(void *, const EventAttributes *)>(kModuleCore2, core2::kDomainRangeStartEx);
  const uint64_t id = start(domain, &attributes);
  function<void(void *, uint64_t)>(kModuleCore2, core2::kDomainRangeEnd)(domain, id);
  EXPECT_EQ(text_of(scopes(SONDE_FRAMEWORK_MARK).at(0).name), "registered");
  EXPECT_EQ(scopes(SONDE_FRAMEWORK_RANGE_START).at(0).scope, ends(SONDE_FRAMEWORK_RANGE_END).at(0).scope);
  EXPECT_EQ(text_of(ends(SONDE_FRAMEWORK_RANGE_END).at(0).domain), "nvtx:lib");
  function<void(void *)>(kModuleCore2, core2::kDomainDestroy)(domain);
}

TEST_F(Nvtx, NamesOfThingsAreObjects) {
  function<void(uint32_t, const char *)>(kModuleCore, core::kNameThreadA)(4242, "loader");
  function<void(int, const char *)>(kModuleCuda, cuda::kNameDeviceA)(3, "big");
  function<void(void *, const char *)>(kModuleCudaRuntime, cuda_runtime::kNameStreamA)(reinterpret_cast<void *>(0x99),
                                                                                       "copies");
  ResourceAttributes resource = {};
  resource.size = sizeof(resource);
  resource.identifier_type = kResourcePointer;
  resource.identifier.value = 0xABCD;
  resource.message_type = kMessageAscii;
  resource.message.ascii = "weights";
  void *made =
      function<void *(void *, ResourceAttributes *)>(kModuleCore2, core2::kDomainResourceCreate)(nullptr, &resource);
  EXPECT_NE(made, nullptr);
  function<void(void *)>(kModuleCore2, core2::kDomainResourceDestroy)(made);
  const auto all = names();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].kind, SONDE_NAMED_THREAD);
  EXPECT_EQ(all[0].object, 4242u);
  EXPECT_EQ(text_of(all[0].name), "loader");
  EXPECT_EQ(all[1].kind, SONDE_NAMED_DEVICE);
  EXPECT_EQ(all[1].object, 3u);
  EXPECT_EQ(all[2].kind, SONDE_NAMED_STREAM);
  EXPECT_EQ(all[2].object, 0x99u);  // without CUPTI the handle is all there is
  EXPECT_EQ(all[3].kind, SONDE_NAMED_ADDRESS);
  EXPECT_EQ(all[3].object, 0xABCDu);
}

TEST_F(Nvtx, ATypeThatNobodyWantsIsNotWritten) {
  session_.unwant_all();
  session_.want(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP);
  push("a");
  pop();
  EXPECT_TRUE(scopes(SONDE_FRAMEWORK_SCOPE_PUSH).empty());
  EXPECT_EQ(ends(SONDE_FRAMEWORK_SCOPE_POP).size(), 1u);
}

TEST_F(Nvtx, WhatAToolDoesItselfIsNotCaptured) {
  services().capture->enter();
  push("tool");
  pop();
  services().capture->leave();
  EXPECT_TRUE(scopes(SONDE_FRAMEWORK_SCOPE_PUSH).empty());
}

TEST_F(Nvtx, EverySessionThatWantsItGetsIt) {
  sonde_session_t second_session;
  second_session.want_all(SONDE_SPACE_FRAMEWORK);
  Port second(&second_session, PortOptions());
  PortOptions without;
  without.nvtx = false;
  sonde_session_t third_session;
  third_session.want_all(SONDE_SPACE_FRAMEWORK);
  Port third(&third_session, without);
  ASSERT_EQ(second.start(), SONDE_OK);
  ASSERT_EQ(third.start(), SONDE_OK);
  push("shared");
  EXPECT_EQ(second.stop(), SONDE_OK);
  EXPECT_EQ(third.stop(), SONDE_OK);
  pop();
  EXPECT_EQ(scopes(SONDE_FRAMEWORK_SCOPE_PUSH).size(), 1u);
  EXPECT_EQ(second_session.emitted.size(), 1u);
  EXPECT_EQ(third_session.emitted.size(), 0u);
  EXPECT_EQ(ends(SONDE_FRAMEWORK_SCOPE_POP).size(), 1u);
}

// Sessions come and go while threads are inside NVTX: no event reaches a session after its stop has returned.
TEST_F(Nvtx, SessionsMayEndWhileThreadsPush) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        push("busy");
        pop();
      }
    });
  }
  uint64_t seen = 0;
  for (int i = 0; i < 50; ++i) {
    sonde_session_t session;
    session.want_all(SONDE_SPACE_FRAMEWORK);
    Port port(&session, PortOptions());
    ASSERT_EQ(port.start(), SONDE_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(port.stop(), SONDE_OK);
    seen += session.emitted.size();
  }
  stop = true;
  for (auto &thread : threads) thread.join();
  EXPECT_GT(seen, 0u);
}

TEST_F(Nvtx, AnOlderNvtxIsAttachedAsFarAsItGoes) {
  make_tables({kModuleCore});
  table_size = core::kRangePop;  // no RangePop, no names
  EXPECT_EQ(inject(get_export_table), SONDE_OK);
  EXPECT_NE(modules[kModuleCore][core::kRangePushA], nullptr);
  EXPECT_EQ(modules[kModuleCore][core::kRangePop], nullptr);
}

TEST_F(Nvtx, TablesThatAreNotNvtxsAreRefused) {
  EXPECT_EQ(inject(nullptr), SONDE_E_INVALID);
  EXPECT_EQ(inject([](uint32_t) -> const void * { return nullptr; }), SONDE_E_INVALID);
  static const ExportTableCallbacks tiny = {8, get_module_function_table};
  EXPECT_EQ(inject([](uint32_t) -> const void * { return &tiny; }), SONDE_E_INVALID);
  make_tables({});
  EXPECT_EQ(inject(get_export_table), SONDE_E_INVALID);
  EXPECT_NE(test::last_error(), "");
}

}  // namespace
}  // namespace sonde::cuda::nvtx
