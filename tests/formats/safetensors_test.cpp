#include "core/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "tests/support/message_of.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/sparse_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::read_safetensors;
using testing::HasSubstr;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Safetensors : public testing::Test {
 protected:
  void write() {
    write_safetensors(path_, {{"a", {2, 3}, a_.data()}, {"b", {1}, b_.data()}}, {{"step", "7"}});
  }
  test::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.safetensors";
  std::vector<float> a_{1, 2, 3, 4, 5, 6.5F}, b_{-0.25F};
};

TEST_F(Safetensors, WhatIsWrittenIsReadBack) {
  write();
  const ArrayFile file = read_safetensors(path_);
  EXPECT_EQ(file.arrays.at("a").values, a_);
  EXPECT_EQ(file.arrays.at("a").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.arrays.at("b").values, b_);
  EXPECT_EQ(file.metadata.at("step"), "7");
  EXPECT_EQ(read_safetensors_metadata(path_).at("step"), "7");
}

TEST_F(Safetensors, TheHeaderFollowsTheFormat) {
  write();
  const std::string bytes = bytes_of(path_);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(bytes.size(), 8 + length + 7 * sizeof(float));
  EXPECT_THAT(bytes.substr(8, length), HasSubstr("\"dtype\":\"F32\""));
}

TEST_F(Safetensors, ATruncationAtAnyByteIsAnErrorThatNamesTheFile) {
  write();
  const std::string bytes = bytes_of(path_);
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes.substr(0, size);
    EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }), HasSubstr(path_.string()))
        << size;
  }
}

TEST_F(Safetensors, ADamagedByteAnywhereIsAnErrorThatNamesTheFile) {
  write();
  const std::string bytes = bytes_of(path_);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }), HasSubstr(path_.string()))
        << at;
  }
}

TEST_F(Safetensors, ChecksumsAreInTheMetadataForOtherPrograms) {
  write();
  // zlib.crc32 of the bytes of the float -0.25
  EXPECT_THAT(bytes_of(path_), HasSubstr(R"("crc32 b":"361ed9dc")"));
}

TEST_F(Safetensors, AFileOfAnotherFormatIsAnError) {
  std::ofstream(path_) << "this is a text file and no weights at all";
  EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }),
              HasSubstr("not a usable safetensors file"));
}

TEST_F(Safetensors, AnImpossibleShapeIsAnErrorAndTakesNoMemory) {
  std::string header =
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})";
  const uint64_t length = header.size();
  std::ofstream stream(path_, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&length), 8);
  stream << header << "12345678";
  stream.close();
  EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }), HasSubstr("impossible shape"));
}

TEST_F(Safetensors, AMissingFileIsAnError) {
  EXPECT_THAT(message_of([&] { (void)read_safetensors(folder_.path() / "none"); }),
              HasSubstr("cannot be read"));
}

TEST_F(Safetensors, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  write();
  const std::string before = bytes_of(path_);
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{64, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = message_of([&] {
    write_safetensors(path_, {{"a", {2, 3}, a_.data()}}, {});
  });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, signal_before);
  EXPECT_THAT(message, HasSubstr("cannot be written: File too large"));
  EXPECT_EQ(bytes_of(path_), before);
  EXPECT_FALSE(std::filesystem::exists(pending_file(path_)));
}

TEST_F(Safetensors, ADeviceStaysADevice) {
  EXPECT_THAT(message_of([&] { write_text_file("/dev/full", "text"); }),
              HasSubstr("file '/dev/full' cannot be written"));
  write_text_file("/dev/null", "text");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Safetensors, ATypeThatIsNoTextIsAnError) {
  const std::string header = R"({"a":{"dtype":5,"shape":[1],"data_offsets":[0,4]}})";
  const uint64_t length = header.size();
  std::ofstream stream(path_, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&length), 8);
  stream << header << std::string(4, '\0');
  stream.close();
  EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }),
              HasSubstr("the entry of array 'a' is malformed"));
}

TEST_F(Safetensors, SizesAndPlacesAreIntegersInTheirRange) {
  for (const std::string entry :
       {R"("shape":[1],"data_offsets":[96922337203685477580700,4])",
        R"("shape":[1],"data_offsets":[0,4.5])", R"("shape":[1],"data_offsets":[0,4,4])",
        R"("shape":[1],"data_offsets":[-4,0])", R"("shape":[1],"data_offsets":[0])",
        R"("shape":[1.5],"data_offsets":[0,4])", R"("shape":[1e30],"data_offsets":[0,4])"}) {
    const std::string header = R"({"a":{"dtype":"F32",)" + entry + "}}";
    const uint64_t length = header.size();
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), 8);
    stream << header << std::string(4, '\0');
    stream.close();
    EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }),
                HasSubstr("the entry of array 'a' is malformed"))
        << entry;
  }
}

TEST_F(Safetensors, AHeaderThatIsNotJsonIsRefusedInALine) {
  for (const std::string& header :
       {"{\"" + std::string(100'000, 'a'), "{\"a\":" + std::string(100'000, '[')}) {
    const uint64_t length = header.size();
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), 8);
    stream << header;
    stream.close();
    const std::string message = message_of([&] { (void)read_safetensors(path_); });
    EXPECT_THAT(message, HasSubstr("its header is not JSON: "));
    EXPECT_LT(message.size(), 500U);
  }
}

TEST_F(Safetensors, ShapesAreKnownBeforeValuesTakeMemory) {
  test::write_sparse_safetensors(path_, "a", R"("step":"7")");
  const SafetensorsReader reader(path_);
  EXPECT_EQ(reader.contents().metadata.at("step"), "7");
  const ArrayFile::Array& array = reader.contents().arrays.at("a");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{int64_t{1} << 38}));
  EXPECT_TRUE(array.values.empty());
}

// What looks at all other arrays for each one takes many minutes.
TEST_F(Safetensors, OfHundredsOfThousandsOfArraysAreRead) {
  std::string header = "{";
  constexpr int arrays = 400'000;
  for (int i = 0; i < arrays; ++i) {
    header += fmt::format(R"("{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}},)", i);
  }
  header.back() = '}';
  const uint64_t length = header.size();
  std::ofstream stream(path_, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&length), 8);
  stream << header;
  stream.close();
  EXPECT_EQ(SafetensorsReader(path_).contents().arrays.size(), size_t{arrays});
}

TEST_F(Safetensors, NamesOfManyBracketsAreNotNested) {
  const std::string brackets(100, '[');
  for (const std::string& name : {brackets, "\\\"" + brackets, brackets + "\\\\"}) {
    const std::string header =
        "{\"" + name + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
    const uint64_t length = header.size();
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), 8);
    stream << header;
    stream.close();
    EXPECT_EQ(SafetensorsReader(path_).contents().arrays.size(), 1U) << header;
  }
}

// Else a small file with a long header would fill the memory.
TEST_F(Safetensors, ArraysThatOverlapAreRefused) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const uint64_t length = header.size();
  std::ofstream stream(path_, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&length), 8);
  stream << header << std::string(8, '\0');
  stream.close();
  EXPECT_THAT(message_of([&] { (void)read_safetensors(path_); }),
              HasSubstr("array 'b' overlaps others"));
}

}  // namespace
}  // namespace tandem
