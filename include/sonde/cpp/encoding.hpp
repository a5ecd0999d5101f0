// Encodings of tensors over sonde.layout_encoding/1. See sonde/sonde.hpp.
//
//   const auto blocked = sonde::Encoding::parse(host, "#ttg.blocked<{sizePerThread = [1, 4], ...}>");
//   const sonde::Layout layout = blocked.layout(arena, {128, 64});
#ifndef SONDE_CPP_ENCODING_HPP
#define SONDE_CPP_ENCODING_HPP

#include <sonde/sonde.h>
#include <sonde/cpp/host.hpp>
#include <sonde/cpp/layout.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sonde {

// An attribute of a module's text.
struct FoundEncoding {
  uint64_t offset = 0;  // of its '#', bytes from the beginning of the module
  uint64_t bytes = 0;   // its length; 0 when it could not be read
  std::string alias;    // of "#alias = #ttg..."; "" where the attribute stands in place
  std::string text;     // in the newest spelling, with parents in place; "" when it could not be read
  std::string error;    // what was expected; "" when it could be read
};

// An encoding. Immutable; copies share it.
class Encoding {
 public:
  // `module` is text with the aliases that the attribute names.
  static Encoding parse(const Host &host, std::string_view text, std::string_view module = {}) {
    const auto &service = host.service<sonde_layout_encoding_service_t>();
    sonde_encoding_t *handle = nullptr;
    host.check(
        service.parse(text.data() == nullptr ? "" : text.data(), text.size(), module.data(), module.size(), &handle));
    return Encoding(host, service, handle);
  }
  // `kind` is the attribute's word, as "blocked"; `parent` that of slices and operands.
  static Encoding make(const Host &host, const std::string &kind,
                       const std::vector<sonde_encoding_parameter_t> &parameters, const Encoding *parent = nullptr) {
    const auto &service = host.service<sonde_layout_encoding_service_t>();
    sonde_encoding_t *handle = nullptr;
    host.check(service.make(kind.c_str(), parameters.data(), static_cast<uint32_t>(parameters.size()),
                            parent == nullptr ? nullptr : parent->get(), &handle));
    return Encoding(host, service, handle);
  }
  // Every attribute of a module, in order.
  static std::vector<FoundEncoding> scan(const Host &host, std::string_view module) {
    const auto &service = host.service<sonde_layout_encoding_service_t>();
    struct Scan {
      const Host &host;
      const sonde_layout_encoding_service_t &service;
      std::vector<FoundEncoding> found;
    } scan{host, service, {}};
    const auto add = [](void *user, const sonde_found_encoding_t *attribute) -> sonde_status {
      Scan &own = *static_cast<Scan *>(user);
      return guarded(own.host.table(), [&] {
        own.found.push_back({attribute->offset, attribute->bytes, attribute->alias,
                             attribute->encoding == nullptr ? "" : text_of(own.host, own.service, attribute->encoding),
                             attribute->error});
      });
    };
    uint64_t unparsed = 0;
    host.check(service.scan(module.data(), module.size(), add, &scan, &unparsed));
    return std::move(scan.found);
  }

  const sonde_encoding_t *get() const { return handle_.get(); }
  // The attribute in the newest spelling, with parents in place.
  std::string text() const { return text_of(host_, *service_, get()); }
  std::string kind() const {
    const char *kind = nullptr;
    host_.check(service_->kind(get(), &kind, nullptr));
    return kind;
  }
  // SONDE_ENCODING_REGISTERS ...
  uint32_t space() const {
    uint32_t space = 0;
    host_.check(service_->kind(get(), nullptr, &space));
    return space;
  }
  // The layout of a tensor of this shape (powers of two).
  Layout layout(const LayoutArena &arena, const std::vector<uint64_t> &shape) const {
    const sonde_layout_t *made = nullptr;
    host_.check(service_->layout(arena.get(), get(), shape.data(), static_cast<uint32_t>(shape.size()), &made));
    return Layout(arena, made);
  }
  // Where an offset of padded shared memory lies, in elements; the offset itself for other kinds.
  uint64_t padded_address(uint64_t offset) const {
    uint64_t address = 0;
    host_.check(service_->padded_address(get(), offset, &address));
    return address;
  }

 private:
  Encoding(const Host &host, const sonde_layout_encoding_service_t &service, sonde_encoding_t *handle)
      : host_(host), service_(&service), handle_(handle, [&service](const sonde_encoding_t *owned) {
          service.release(const_cast<sonde_encoding_t *>(owned));
        }) {}

  static std::string text_of(const Host &host, const sonde_layout_encoding_service_t &service,
                             const sonde_encoding_t *encoding) {
    uint64_t needed = 0;
    host.check(service.text(encoding, nullptr, 0, &needed));
    std::string result(needed + 1, '\0');
    host.check(service.text(encoding, result.data(), result.size(), &needed));
    result.resize(needed);
    return result;
  }

  Host host_;
  const sonde_layout_encoding_service_t *service_;
  std::shared_ptr<const sonde_encoding_t> handle_;
};

}  // namespace sonde

#endif
