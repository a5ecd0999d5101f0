#include "code.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sonde::cuda::access {

namespace {

// Low 12 bits of an instruction (16 bytes from Volta on). Found by compiling each copy for sm_90 with ptxas 13.0:
// UTMALDG, UTMASTG, UTMAREDG. The prefetch (0x5b8) reads nothing that the program sees.
constexpr uint32_t kTensorCopies[] = {0x5b4, 0x3b5, 0x3b6};
constexpr size_t kInstructionBytes = 16;

bool has_tensor_copy(const char *code, size_t bytes) {
  for (size_t at = 0; at + kInstructionBytes <= bytes; at += kInstructionBytes) {
    uint64_t low = 0;
    std::memcpy(&low, code + at, sizeof(low));
    if (std::find(std::begin(kTensorCopies), std::end(kTensorCopies), low & 0xfff) != std::end(kTensorCopies)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> functions_with_tensor_copies(const char *image, size_t bytes) {
  std::vector<std::string> found;
  Elf64_Ehdr header;
  if (image == nullptr || bytes < sizeof(header)) return found;
  std::memcpy(&header, image, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > bytes ||
      (bytes - header.e_shoff) / sizeof(Elf64_Shdr) < header.e_shnum || header.e_shstrndx >= header.e_shnum) {
    return found;
  }
  const auto section = [&](size_t index) {
    Elf64_Shdr out;
    std::memcpy(&out, image + header.e_shoff + index * sizeof(out), sizeof(out));
    return out;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  if (names.sh_offset > bytes || bytes - names.sh_offset < names.sh_size) return found;
  constexpr char kPrefix[] = ".text.";
  for (size_t index = 0; index < header.e_shnum; ++index) {
    const Elf64_Shdr code = section(index);
    if (code.sh_type != SHT_PROGBITS || code.sh_name >= names.sh_size) continue;
    if (code.sh_offset > bytes || bytes - code.sh_offset < code.sh_size) continue;
    const char *const name = image + names.sh_offset + code.sh_name;
    const size_t length = strnlen(name, names.sh_size - code.sh_name);
    if (length <= sizeof(kPrefix) - 1 || std::memcmp(name, kPrefix, sizeof(kPrefix) - 1) != 0) continue;
    if (has_tensor_copy(image + code.sh_offset, code.sh_size)) {
      found.emplace_back(name + sizeof(kPrefix) - 1, length - (sizeof(kPrefix) - 1));
    }
  }
  return found;
}

}  // namespace sonde::cuda::access
