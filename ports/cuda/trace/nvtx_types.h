// What Sonde needs to know of NVTX's injection interface: numbers and layouts, declared here as facts.
//
// A program's NVTX (header-only in version 3) calls InitializeInjectionNvtx2 of the injected library with a function
// that gives export tables; the callback table gives, for each module, an array of pointers to the function pointers
// that the program's calls go through. Setting one attaches to that function. tests/abi/cupti compares all of this
// with the real headers where they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::cuda::nvtx {

using GetExportTable = const void *(*)(uint32_t table);
inline constexpr uint32_t kTableCallbacks = 1;

// An array of pointers to function pointers.
using Function = void (*)();
using FunctionTable = Function **;

struct ExportTableCallbacks {
  size_t struct_size;
  int (*get_module_function_table)(uint32_t module, FunctionTable *table, uint32_t *size);
};

inline constexpr uint32_t kModuleCore = 1;
inline constexpr uint32_t kModuleCuda = 2;
inline constexpr uint32_t kModuleCudaRuntime = 4;
inline constexpr uint32_t kModuleCore2 = 5;

namespace core {
inline constexpr uint32_t kMarkEx = 1;
inline constexpr uint32_t kMarkA = 2;
inline constexpr uint32_t kMarkW = 3;
inline constexpr uint32_t kRangeStartEx = 4;
inline constexpr uint32_t kRangeStartA = 5;
inline constexpr uint32_t kRangeStartW = 6;
inline constexpr uint32_t kRangeEnd = 7;
inline constexpr uint32_t kRangePushEx = 8;
inline constexpr uint32_t kRangePushA = 9;
inline constexpr uint32_t kRangePushW = 10;
inline constexpr uint32_t kRangePop = 11;
inline constexpr uint32_t kNameCategoryA = 12;
inline constexpr uint32_t kNameCategoryW = 13;
inline constexpr uint32_t kNameThreadA = 14;
inline constexpr uint32_t kNameThreadW = 15;
}  // namespace core

namespace core2 {
inline constexpr uint32_t kDomainMarkEx = 1;
inline constexpr uint32_t kDomainRangeStartEx = 2;
inline constexpr uint32_t kDomainRangeEnd = 3;
inline constexpr uint32_t kDomainRangePushEx = 4;
inline constexpr uint32_t kDomainRangePop = 5;
inline constexpr uint32_t kDomainResourceCreate = 6;
inline constexpr uint32_t kDomainResourceDestroy = 7;
inline constexpr uint32_t kDomainNameCategoryA = 8;
inline constexpr uint32_t kDomainNameCategoryW = 9;
inline constexpr uint32_t kDomainRegisterStringA = 10;
inline constexpr uint32_t kDomainRegisterStringW = 11;
inline constexpr uint32_t kDomainCreateA = 12;
inline constexpr uint32_t kDomainCreateW = 13;
inline constexpr uint32_t kDomainDestroy = 14;
inline constexpr uint32_t kInitialize = 15;
}  // namespace core2

namespace cuda {
inline constexpr uint32_t kNameDeviceA = 1;
inline constexpr uint32_t kNameDeviceW = 2;
inline constexpr uint32_t kNameContextA = 3;
inline constexpr uint32_t kNameContextW = 4;
inline constexpr uint32_t kNameStreamA = 5;
inline constexpr uint32_t kNameStreamW = 6;
inline constexpr uint32_t kNameEventA = 7;
inline constexpr uint32_t kNameEventW = 8;
}  // namespace cuda

namespace cuda_runtime {
inline constexpr uint32_t kNameDeviceA = 1;
inline constexpr uint32_t kNameDeviceW = 2;
inline constexpr uint32_t kNameStreamA = 3;
inline constexpr uint32_t kNameStreamW = 4;
inline constexpr uint32_t kNameEventA = 5;
inline constexpr uint32_t kNameEventW = 6;
}  // namespace cuda_runtime

inline constexpr int32_t kColorArgb = 1;
inline constexpr int32_t kMessageAscii = 1;
inline constexpr int32_t kMessageWide = 2;
inline constexpr int32_t kMessageRegistered = 3;
inline constexpr int32_t kPayloadUint64 = 1;
inline constexpr int32_t kPayloadInt64 = 2;
inline constexpr int32_t kPayloadDouble = 3;
inline constexpr int32_t kPayloadUint32 = 4;
inline constexpr int32_t kPayloadInt32 = 5;
inline constexpr int32_t kPayloadFloat = 6;

union Message {
  const char *ascii;
  const wchar_t *wide;
  const void *registered;
};

struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t message_type;
  Message message;
};

inline constexpr int32_t kResourcePointer = 0x10001;
inline constexpr int32_t kResourceHandle = 0x10002;
inline constexpr int32_t kResourceThreadNative = 0x10003;
inline constexpr int32_t kResourceThreadPosix = 0x10004;

struct ResourceAttributes {
  uint16_t version;
  uint16_t size;
  int32_t identifier_type;
  union {
    const void *pointer;
    uint64_t value;
  } identifier;
  int32_t message_type;
  Message message;
};

}  // namespace sonde::cuda::nvtx
