// What can be said of the end of a capture whose process did not end in order.
#include "store/tail.h"

#include "house.h"

namespace sonde::store {
namespace {

using testing::Folder;

std::string live_file(const Folder &folder, const core::LiveHeader &header,
                      const std::vector<core::LiveStream> &streams) {
  std::vector<uint8_t> bytes(sizeof header + streams.size() * sizeof(core::LiveStream));
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!streams.empty()) {
    std::memcpy(bytes.data() + sizeof header, streams.data(), streams.size() * sizeof(core::LiveStream));
  }
  testing::write_file(folder.file("live"), bytes);
  return folder.file("live");
}

core::LiveHeader header_of(uint32_t used) {
  core::LiveHeader header{};
  header.magic = core::kLiveMagic;
  header.version = core::kLiveVersion;
  header.capacity = 10;
  header.used = used;
  return header;
}

TEST(Tail, IsWhatWasPublishedAndNotWritten) {
  const Folder folder;
  const auto live = read_live_file(live_file(
      folder, header_of(3), {{1, 1000, 900, 0, 0, 0, 0, 0}, {2, 500, 500, 7, 0, 0, 0, 0}, {3, 64, 0, 0, 0, 0, 0, 0}}));
  ASSERT_TRUE(live);
  const std::vector<sonde_loss_t> ledger = {{2, 3, 48, SONDE_LOSS_RING_FULL, 0, 0}};
  const std::vector<sonde_loss_t> rows = losses_of_unfinished(ledger, {{1, 800}, {2, 500}}, live, 1 << 20);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].cause, SONDE_LOSS_RING_FULL);
  EXPECT_EQ(rows[0].records, 7u) << "the live file is newer than the ledger";
  EXPECT_EQ(rows[1].stream, 1u);
  EXPECT_EQ(rows[1].cause, SONDE_LOSS_TAIL);
  EXPECT_EQ(rows[1].bytes, 200u);
  EXPECT_EQ(rows[1].records, UINT64_MAX);
  EXPECT_EQ(rows[2].stream, 3u);
  EXPECT_EQ(rows[2].bytes, 64u) << "nothing of it was written";
}

TEST(Tail, IsUnknownWhereStreamsHadNoRow) {
  const Folder folder;
  core::LiveHeader header = header_of(1);
  header.overflow = 1;
  const auto live = read_live_file(live_file(folder, header, {{1, 1000, 0, 0, 0, 0, 0, 0}}));
  ASSERT_TRUE(live);
  const std::vector<sonde_loss_t> rows = losses_of_unfinished({}, {{1, 1000}}, live, 4096);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].stream, 0u);
  EXPECT_EQ(rows[0].records, UINT64_MAX);
  EXPECT_EQ(rows[0].bytes, 4096u);
}

TEST(Tail, IsUnknownWithoutALiveFile) {
  const std::vector<sonde_loss_t> rows = losses_of_unfinished({}, {}, std::nullopt, 0);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].records, UINT64_MAX);
  EXPECT_EQ(rows[0].bytes, UINT64_MAX);
}

TEST(Tail, ALiveFileThatMakesNoSenseIsNone) {
  const Folder folder;
  EXPECT_FALSE(read_live_file(folder.file("none")));
  core::LiveHeader header = header_of(0);
  header.magic = 1;
  EXPECT_FALSE(read_live_file(live_file(folder, header, {})));
  testing::write_file(folder.file("short"), {1, 2, 3});
  EXPECT_FALSE(read_live_file(folder.file("short")));
}

TEST(Tail, ALiveFileCutShortLeavesUnknownStreams) {
  const Folder folder;
  const auto live = read_live_file(live_file(folder, header_of(2), {{1, 1000, 0, 0, 0, 0, 0, 0}}));
  ASSERT_TRUE(live);
  EXPECT_TRUE(live->overflow);
  EXPECT_EQ(live->streams.size(), 1u);
}

}  // namespace
}  // namespace sonde::store
