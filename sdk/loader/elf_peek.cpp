#include "loader/elf_peek.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace sonde::loader {

namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#endif

// A file mapped for reading, with bounds-checked copies out of it.
class FileView {
 public:
  FileView(const void *data, uint64_t bytes) : data_(static_cast<const char *>(data)), bytes_(bytes) {}
  ~FileView() { ::munmap(const_cast<char *>(data_), bytes_); }
  FileView(const FileView &) = delete;
  FileView &operator=(const FileView &) = delete;

  template <typename Value>
  bool read(uint64_t offset, Value &out) const {
    if (offset > bytes_ || bytes_ - offset < sizeof(Value)) return false;
    std::memcpy(&out, data_ + offset, sizeof(Value));
    return true;
  }

  bool text_equals(uint64_t offset, std::string_view text) const {
    return offset <= bytes_ && bytes_ - offset > text.size() &&
           std::memcmp(data_ + offset, text.data(), text.size()) == 0 && data_[offset + text.size()] == '\0';
  }

 private:
  const char *data_;
  uint64_t bytes_;
};

Error corrupt(const std::string &path, std::string_view what) {
  return {SONDE_E_CORRUPT, fmt::format("{}: {}", path, what)};
}

// File offset of a virtual address, or UINT64_MAX.
uint64_t file_offset(const FileView &file, const Elf64_Ehdr &header, uint64_t address) {
  for (uint16_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    if (!file.read(header.e_phoff + uint64_t{index} * header.e_phentsize, segment)) return UINT64_MAX;
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    if (address - segment.p_vaddr < segment.p_filesz) return segment.p_offset + (address - segment.p_vaddr);
  }
  return UINT64_MAX;
}

Result<PeekedEntry> find_entry(const std::string &path, const FileView &file) {
  Elf64_Ehdr header{};
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return corrupt(path, "not an ELF file, so no plugin");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine || header.e_type != ET_DYN) {
    return corrupt(path, fmt::format("not a shared object of this machine (ELF machine {}, type {})", header.e_machine,
                                     header.e_type));
  }
  // The section headers close the file: if the last of them is there, nothing was cut off.
  Elf64_Shdr last{};
  if (header.e_shnum > 0 && !file.read(header.e_shoff + (header.e_shnum - uint64_t{1}) * header.e_shentsize, last)) {
    return corrupt(path, "the file is cut off before its section headers");
  }
  for (uint16_t index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr section{};
    if (!file.read(header.e_shoff + uint64_t{index} * header.e_shentsize, section)) {
      return corrupt(path, "the file is cut off before its section headers");
    }
    if (section.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr names{};
    if (!file.read(header.e_shoff + uint64_t{section.sh_link} * header.e_shentsize, names)) {
      return corrupt(path, "its symbol table has no names");
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      if (!file.read(section.sh_offset + at, symbol)) return corrupt(path, "the file is cut off in its symbol table");
      if (symbol.st_shndx == SHN_UNDEF || !file.text_equals(names.sh_offset + symbol.st_name, "sonde_plugin_entry")) {
        continue;
      }
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) {
        return corrupt(path, "sonde_plugin_entry is not a data object; SONDE_DEFINE_PLUGIN defines it");
      }
      PeekedEntry entry;
      const uint64_t offset = file_offset(file, header, symbol.st_value);
      if (symbol.st_size < 8 || !file.read(offset, entry.struct_size) || !file.read(offset + 4, entry.abi_major) ||
          !file.read(offset + 6, entry.abi_minor_required)) {
        return corrupt(path, "sonde_plugin_entry does not lie in the file");
      }
      entry.found = true;
      return entry;
    }
    return Error{SONDE_E_NOT_FOUND,
                 fmt::format("{}: a shared object, but it does not define sonde_plugin_entry", path)};
  }
  return PeekedEntry{};
}

}  // namespace

Result<PeekedEntry> peek_entry(const std::string &path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Error{SONDE_E_IO, fmt::format("{}: cannot open: {}", path, std::strerror(errno))};
  struct stat status {};
  const bool is_file = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (!is_file || status.st_size == 0) {
    ::close(descriptor);
    return corrupt(path, is_file ? "an empty file" : "not a file");
  }
  void *const mapped = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (mapped == MAP_FAILED) return Error{SONDE_E_IO, fmt::format("{}: cannot map: {}", path, std::strerror(error))};
  const FileView file(mapped, static_cast<uint64_t>(status.st_size));
  return find_entry(path, file);
}

}  // namespace sonde::loader
