// Text of CuTe tuples, layouts and tilers.
#include <charconv>
#include <vector>

#include "layout/cute.h"

namespace sonde::layout {
namespace {

class Reader {
 public:
  Reader(Arena &arena, std::string_view text) : arena_(arena), text_(text) {}

  const CuteTuple *tuple(uint32_t depth = 0) {
    if (depth > kCuteMaxDepth) {
      arena_.fail(Fault::kUnsupported, "the text is nested deeper than " + std::to_string(kCuteMaxDepth));
      return nullptr;
    }
    if (accept('_')) return make_cute_value(arena_, CuteTuple::kAll);
    if (!accept('(')) return number();
    std::vector<const CuteTuple *> items;
    if (accept(')')) return make_cute_items(arena_, items);
    do {
      const CuteTuple *const item = tuple(depth + 1);
      if (item == nullptr) return nullptr;
      items.push_back(item);
      if (items.size() > kCuteMaxLeaves) {
        arena_.fail(Fault::kUnsupported, "a tuple has at most " + std::to_string(kCuteMaxLeaves) + " items");
        return nullptr;
      }
    } while (accept(','));
    return expect(')', "`,` or `)`") ? make_cute_items(arena_, items) : nullptr;
  }

  const CuteLayout *layout() {
    const CuteTuple *const shape = tuple();
    if (shape == nullptr || !expect(':', "`:` and the strides")) return nullptr;
    const CuteTuple *const stride = tuple();
    return stride == nullptr ? nullptr : make_cute(arena_, *shape, *stride);
  }

  const CuteTiler *tiler(uint32_t depth = 0) {
    if (depth > kCuteMaxDepth) {
      arena_.fail(Fault::kUnsupported, "the text is nested deeper than " + std::to_string(kCuteMaxDepth));
      return nullptr;
    }
    if (!accept('<')) {
      const CuteTuple *const shape = tuple();
      if (shape == nullptr) return nullptr;
      if (!accept(':')) return make_cute_tiler(arena_, *shape);
      const CuteTuple *const stride = tuple();
      const CuteLayout *const whole = stride == nullptr ? nullptr : make_cute(arena_, *shape, *stride);
      return whole == nullptr ? nullptr : make_cute_tiler(arena_, *whole);
    }
    std::vector<const CuteTiler *> modes;
    do {
      const CuteTiler *const mode = tiler(depth + 1);
      if (mode == nullptr) return nullptr;
      modes.push_back(mode);
    } while (accept(','));
    return expect('>', "`,` or `>`") ? make_cute_tiler(arena_, modes) : nullptr;
  }

  bool end() {
    skip();
    if (at_ == text_.size()) return true;
    wrong("the end of the text");
    return false;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char letter) {
    skip();
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  bool expect(char letter, const char *what) {
    if (accept(letter)) return true;
    wrong(what);
    return false;
  }

  void wrong(const std::string &expected) {
    arena_.fail(Fault::kParse, "at column " + std::to_string(at_ + 1) + ": expected " + expected + ", found " +
                                   (at_ < text_.size() ? std::string("`") + text_[at_] + "`" : "the end"));
  }

  const CuteTuple *number() {
    skip();
    int64_t value = 0;
    const char *const begin = text_.data() + at_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) {
      arena_.fail(Fault::kUnsupported, "at column " + std::to_string(at_ + 1) + ": a number past 64 bits");
      return nullptr;
    }
    if (error != std::errc{} || value == CuteTuple::kAll) {
      wrong("a number or `(`");
      return nullptr;
    }
    at_ += static_cast<size_t>(stop - begin);
    return make_cute_value(arena_, value);
  }

  Arena &arena_;
  std::string_view text_;
  size_t at_ = 0;
};

void write(const CuteTuple &tuple, std::string &text) {
  if (tuple.is_leaf()) {
    text += tuple.is_all() ? "_" : std::to_string(tuple.value());
    return;
  }
  text += '(';
  for (size_t i = 0; i < tuple.items().size(); ++i) {
    if (i != 0) text += ',';
    write(*tuple.items()[i], text);
  }
  text += ')';
}

void write(const CuteLayout &layout, int64_t CuteLeaf::*member, std::string &text) {
  if (layout.is_leaf()) {
    text += std::to_string(layout.leaves()[0].*member);
    return;
  }
  text += '(';
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    if (i != 0) text += ',';
    write(layout.mode(i), member, text);
  }
  text += ')';
}

}  // namespace

const CuteTuple *parse_cute_tuple(Arena &arena, std::string_view text) {
  Reader reader(arena, text);
  const CuteTuple *const tuple = reader.tuple();
  return tuple != nullptr && reader.end() ? tuple : nullptr;
}

const CuteLayout *parse_cute(Arena &arena, std::string_view text) {
  Reader reader(arena, text);
  const CuteLayout *const layout = reader.layout();
  return layout != nullptr && reader.end() ? layout : nullptr;
}

const CuteTiler *parse_cute_tiler(Arena &arena, std::string_view text) {
  Reader reader(arena, text);
  const CuteTiler *const tiler = reader.tiler();
  return tiler != nullptr && reader.end() ? tiler : nullptr;
}

std::string to_string(const CuteTuple &tuple) {
  std::string text;
  write(tuple, text);
  return text;
}

std::string to_string(const CuteLayout &layout) {
  std::string text;
  write(layout, &CuteLeaf::shape, text);
  text += ':';
  write(layout, &CuteLeaf::stride, text);
  return text;
}

}  // namespace sonde::layout
