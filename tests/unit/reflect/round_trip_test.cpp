// Functions of many shapes, made by templates from a seed: whatever is passed through a signature must reach the
// function bit for bit, and its results must come back.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "reflect/shapes.h"
#include "reflect/signature.h"
#include "values.h"

namespace sonde::test {
namespace {

std::vector<uint64_t> seen;     // arguments as the function received them
std::vector<uint64_t> to_give;  // what it writes to its out parameters
size_t given = 0;

void receive(int32_t value) { seen.push_back(static_cast<uint64_t>(static_cast<int64_t>(value))); }
void receive(uint32_t value) { seen.push_back(value); }
void receive(int64_t value) { seen.push_back(static_cast<uint64_t>(value)); }
void receive(uint64_t value) { seen.push_back(value); }
void receive(double value) { seen.push_back(std::bit_cast<uint64_t>(value)); }
void receive(const char *value) { seen.push_back(reinterpret_cast<uint64_t>(value)); }
void receive(const uint8_t *value) { seen.push_back(reinterpret_cast<uint64_t>(value)); }
void receive(const int64_t *value) { seen.push_back(reinterpret_cast<uint64_t>(value)); }
void receive(const double *value) { seen.push_back(reinterpret_cast<uint64_t>(value)); }
void receive(sonde_session_t *value) { seen.push_back(reinterpret_cast<uint64_t>(value)); }
void receive(int64_t *out) { *out = static_cast<int64_t>(to_give.at(given++)); }
void receive(uint64_t *out) { *out = to_give.at(given++); }
void receive(double *out) { *out = std::bit_cast<double>(to_give.at(given++)); }

template <int Word>
struct WordType;
#define WORD(number, code, ...)                \
  template <>                                  \
  struct WordType<number> {                    \
    using Arguments = std::tuple<__VA_ARGS__>; \
    static constexpr const char *kCode = code; \
  };
WORD(0, "i", int32_t)
WORD(1, "I", uint32_t)
WORD(2, "q", int64_t)
WORD(3, "Q", uint64_t)
WORD(4, "d", double)
WORD(5, "s", const char *)
WORD(6, "y", const uint8_t *, uint64_t)
WORD(7, "L", const int64_t *, uint64_t)
WORD(8, "D", const double *, uint64_t)
WORD(9, "hS", sonde_session_t *)
WORD(10, "&q", int64_t *)
WORD(11, "&Q", uint64_t *)
WORD(12, "&d", double *)
#undef WORD
constexpr int kWords = 13;

template <typename Result, typename Tuple>
struct Function;
template <typename Result, typename... Arguments>
struct Function<Result, std::tuple<Arguments...>> {
  static Result call(Arguments... arguments) {
    (receive(arguments), ...);
    if constexpr (!std::is_void_v<Result>) {
      if constexpr (std::is_same_v<Result, double>)
        return std::bit_cast<double>(to_give.at(given++));
      else
        return static_cast<Result>(to_give.at(given++));
    }
  }
};

constexpr uint64_t mix(uint64_t seed) {
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return seed ^ (seed >> 31);
}

// The function of a seed: up to eight words and one of four results.
template <uint64_t Seed>
struct Made {
  static constexpr size_t kCount = mix(Seed) % 9;
  template <size_t Index>
  using WordAt = WordType<static_cast<int>(mix(Seed * 31 + Index + 1) % kWords)>;
  static constexpr int kResult = static_cast<int>(mix(Seed * 7 + 3) % 5);
  using Result = std::tuple_element_t<kResult, std::tuple<void *, int32_t, uint32_t, uint64_t, double>>;

  template <size_t... Index>
  static void describe(std::string &signature, sonde_function_t &function, std::index_sequence<Index...>) {
    constexpr const char *kResults[] = {"v", "i", "I", "Q", "d"};
    signature = kResults[kResult];
    signature += "(";
    ((signature += WordAt<Index>::kCode), ...);
    signature += ")";
    using Tuple = decltype(std::tuple_cat(std::declval<typename WordAt<Index>::Arguments>()...));
    using Returned = std::conditional_t<kResult == 0, void, Result>;
    function = reinterpret_cast<sonde_function_t>(&Function<Returned, Tuple>::call);
  }
};

struct Case {
  std::string signature;
  sonde_function_t function;
};

template <uint64_t... Seed>
std::vector<Case> make_cases(std::integer_sequence<uint64_t, Seed...>) {
  std::vector<Case> cases(sizeof...(Seed));
  (Made<Seed>::describe(cases[Seed].signature, cases[Seed].function, std::make_index_sequence<Made<Seed>::kCount>()),
   ...);
  return cases;
}

constexpr uint64_t kExtremes[] = {0,
                                  1,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  0x100000000,
                                  UINT64_MAX,
                                  (uint64_t{1} << 53) + 1,
                                  0xffff800012345678,
                                  uint64_t{1} << 63};

uint64_t draw(std::mt19937_64 &random) {
  return random() % 2 == 0 ? random() : kExtremes[random() % std::size(kExtremes)];
}

double draw_double(std::mt19937_64 &random) {
  const double value = std::bit_cast<double>(draw(random));
  return value == value ? value : 0.0;  // a signalling not-a-number may change its bits on the way
}

void run_case(const Case &made, std::mt19937_64 &random) {
  const auto signature = reflect::prepare(made.signature);
  ASSERT_TRUE(signature) << signature.error().text;
  std::vector<sonde_value_t> arguments;
  std::vector<uint64_t> expected;
  std::vector<uint64_t> outs;
  static const char kText[] = "some text";
  for (const reflect::Parameter &parameter : (*signature)->parameters) {
    if (parameter.is_out) {
      outs.push_back(parameter.code == 'd' ? std::bit_cast<uint64_t>(draw_double(random)) : draw(random));
      continue;
    }
    switch (parameter.code) {
      case 'i': {
        const auto value = static_cast<int32_t>(draw(random));
        arguments.push_back(i64(value));
        expected.push_back(static_cast<uint64_t>(static_cast<int64_t>(value)));
        break;
      }
      case 'I': {
        const auto value = static_cast<uint32_t>(draw(random));
        arguments.push_back(u64(value));
        expected.push_back(value);
        break;
      }
      case 'q':
        expected.push_back(draw(random));
        arguments.push_back(i64(static_cast<int64_t>(expected.back())));
        break;
      case 'Q':
        expected.push_back(draw(random));
        arguments.push_back(u64(expected.back()));
        break;
      case 'd': {
        const double value = draw_double(random);
        arguments.push_back(f64(value));
        expected.push_back(std::bit_cast<uint64_t>(value));
        break;
      }
      case 's':
        arguments.push_back(text(kText));
        expected.push_back(reinterpret_cast<uint64_t>(kText));
        break;
      case 'h':
        expected.push_back(draw(random) | 1);
        arguments.push_back(handle(reinterpret_cast<const void *>(expected.back())));
        break;
      default: {  // a view: the function does not look behind the pointer
        const uint64_t pointer = draw(random) | 8;
        const uint64_t count = draw(random);
        arguments.push_back(view(parameter.kind, reinterpret_cast<const void *>(pointer), count));
        expected.push_back(pointer);
        expected.push_back(count);
        break;
      }
    }
  }
  uint64_t answer = draw(random);
  if ((*signature)->result.code == 'd') answer = std::bit_cast<uint64_t>(draw_double(random));
  seen.clear();
  to_give = outs;
  to_give.push_back(answer);
  given = 0;
  std::array<sonde_value_t, 16> results = {};
  uint64_t count = 0;
  ASSERT_EQ(reflect_service().call(reinterpret_cast<const sonde_signature_t *>(*signature), made.function,
                                   arguments.data(), arguments.size(), results.data(), results.size(), &count),
            SONDE_OK)
      << made.signature << ": " << last_error();
  EXPECT_EQ(seen, expected) << made.signature;
  ASSERT_EQ(count, (*signature)->out_count) << made.signature;
  size_t place = 0;
  const char result = (*signature)->result.code;
  if (result != 'v') {
    uint64_t wanted = answer;
    if (result == 'i') wanted = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(answer)));
    if (result == 'I') wanted = static_cast<uint32_t>(answer);
    EXPECT_EQ(results[place++].as.u64, wanted) << made.signature;
  }
  for (const uint64_t out : outs) EXPECT_EQ(results[place++].as.u64, out) << made.signature;
}

TEST(RoundTrip, EveryMadeFunctionSeesItsArguments) {
  const std::vector<Case> cases = make_cases(std::make_integer_sequence<uint64_t, 160>());
  const char *wanted = std::getenv("SONDE_CASES");
  const uint64_t rounds = wanted == nullptr ? 2000 : std::strtoull(wanted, nullptr, 10);
  std::mt19937_64 random(7);
  for (uint64_t round = 0; round < rounds; ++round) {
    run_case(cases[random() % cases.size()], random);
    if (HasFatalFailure()) return;
  }
}

// The compiled shapes and libffi must agree: the same function by both ways.
TEST(RoundTrip, CompiledShapesAreUsed) {
  uint64_t compiled = 0;
  for (const std::string_view *shape = reflect::compiled_shapes(); !shape->empty(); ++shape) {
    EXPECT_NE(reflect::find_trampoline(*shape), nullptr);
    ++compiled;
  }
  EXPECT_GE(compiled, 12u);
  EXPECT_EQ(reflect::find_trampoline("i(ppppppp)"), nullptr);
  EXPECT_NE((*reflect::prepare("e(hS&Q)"))->trampoline, nullptr);
  EXPECT_EQ((*reflect::prepare("e(ddd&Q)"))->trampoline, nullptr);
}

sonde_status add(int64_t a, int64_t b, int64_t *out) {
  *out = a + b;
  return SONDE_OK;
}
int64_t add_two(int64_t a, int64_t b) { return a + b; }

TEST(RoundTrip, BothWaysGiveTheSameAnswer) {
  ASSERT_EQ((*reflect::prepare("e(qq&q)"))->trampoline, nullptr);
  ASSERT_NE((*reflect::prepare("q(qq)"))->trampoline, nullptr);
  std::mt19937_64 random(11);
  for (int round = 0; round < 1000; ++round) {
    const auto a = static_cast<int64_t>(random() >> 2);
    const auto b = -static_cast<int64_t>(random() >> 2);
    const sonde_value_t arguments[] = {i64(a), i64(b)};
    sonde_value_t slow = {};
    sonde_value_t fast = {};
    uint64_t count = 0;
    ASSERT_EQ(reflect_service().call(prepared("e(qq&q)"), reinterpret_cast<sonde_function_t>(&add), arguments, 2, &slow,
                                     1, &count),
              SONDE_OK);
    ASSERT_EQ(reflect_service().call(prepared("q(qq)"), reinterpret_cast<sonde_function_t>(&add_two), arguments, 2,
                                     &fast, 1, &count),
              SONDE_OK);
    EXPECT_EQ(slow.as.i64, fast.as.i64);
    EXPECT_EQ(slow.as.i64, a + b);
  }
}

}  // namespace
}  // namespace sonde::test
