#include "core/formats/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <set>

#include "core/base/files/crc32.h"
#include "core/base/files/files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::TempFolder;

uint64_t little_endian(const std::string& bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes.at(at + i))) << (8 * i);
  }
  return value;
}

uint32_t masked(const std::string& data) {
  const uint32_t sum = crc32c(data.data(), data.size());
  return (sum >> 15 | sum << 17) + 0xa282ead8U;
}

// The records of a file; fails the test where a checksum is wrong.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const uint64_t length = little_endian(file, at, 8);
    EXPECT_EQ(little_endian(file, at + 8, 4), masked(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(little_endian(file, at + 12 + length, 4), masked(records.back()));
    at += 16 + length;
  }
  return records;
}

// The fields of a message: number, and the value's bytes (numbers of a varint as 8 bytes).
std::vector<std::pair<uint64_t, std::string>> fields_of(const std::string& message) {
  std::vector<std::pair<uint64_t, std::string>> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    size_t length = (key & 7U) == 1 ? 8 : 4;
    if ((key & 7U) == 0) {
      const uint64_t value = varint();
      std::string bytes(8, '\0');
      std::memcpy(bytes.data(), &value, 8);
      fields.emplace_back(key >> 3, bytes);
      continue;
    }
    if ((key & 7U) == 2) length = varint();
    fields.emplace_back(key >> 3, message.substr(at, length));
    at += length;
  }
  return fields;
}

std::string only_file(const TempFolder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith(event_file_prefix));
    files.push_back(read_text_file(entry.path()));
  }
  EXPECT_EQ(files.size(), 1U);
  return files.front();
}

TEST(EventFile, IsNotMadeBeforeTheFirstFigures) {
  const TempFolder folder;
  const EventFile events(folder.path(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(EventFile, IsReadBackAsItWasWritten) {
  const TempFolder folder;
  EventFile events(folder.path(), 0);
  events.write(300, {{"train/loss", 0.5}, {"val/top1", 0.75}});
  const std::vector<std::string> records = records_of(only_file(folder));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(fields_of(records[0]).at(1), std::pair(uint64_t{3}, std::string("brain.Event:2")));
  const auto fields = fields_of(records[2]);
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[1].first, 2U);
  EXPECT_EQ(little_endian(fields[1].second, 0, 8), 300U);
  EXPECT_EQ(fields[2].first, 5U);
  std::vector<std::pair<std::string, float>> figures;
  for (const auto& [number, value] : fields_of(fields[2].second)) {
    EXPECT_EQ(number, 1U);
    const auto parts = fields_of(value);
    float figure = 0;
    std::memcpy(&figure, parts.at(1).second.data(), sizeof(figure));
    figures.emplace_back(parts.at(0).second, figure);
  }
  EXPECT_THAT(figures, testing::ElementsAre(testing::Pair("train/loss", 0.5F),
                                            testing::Pair("val/top1", 0.75F)));
}

TEST(EventFile, OfAResumedRunSaysWhereItStarts) {
  const TempFolder folder;
  EventFile events(folder.path(), 40);
  events.write(60, {{"train/loss", 1}});
  const auto session = fields_of(records_of(only_file(folder)).at(1));
  EXPECT_EQ(little_endian(session.at(1).second, 0, 8), 41U);
  EXPECT_EQ(session.at(2), std::pair(uint64_t{7}, std::string("\x08\x01")));  // START
}

// As when the clock is set back between the two.
TEST(EventFile, OfAResumedRunIsReadAfterTheOldOne) {
  const TempFolder folder;
  const std::string tomorrow =
      event_file_prefix + std::to_string(std::time(nullptr) + 86400) + ".1";
  (void)folder.write(tomorrow, "");
  EventFile events(folder.path(), 40);
  events.write(60, {{"train/loss", 1}});
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files.insert(entry.path().filename().string());
  }
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(*files.begin(), tomorrow);
}

TEST(Crc32c, IsThatOfTheStandardsExample) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283U);
}

}  // namespace
}  // namespace tandem
