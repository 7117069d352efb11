// Weight files of other programs: the types of their numbers, shards, and names.
#include "core/formats/open_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/files/files.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Key;
using testing::UnorderedElementsAre;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A safetensors file of one array.
std::string safetensors(const std::string& name, const std::string& type, size_t count,
                        const std::string& bytes) {
  const std::string header =
      fmt::format(R"({{"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", name, type,
                  count, bytes.size());
  return bytes_of<uint64_t>({header.size()}) + header + bytes;
}

class Arrays : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    write_text_file(folder_.path() / name, bytes);
    return folder_.path() / name;
  }
  test::TempFolder folder_;
};

TEST_F(Arrays, OfEveryTypeOfFloatAreRead) {
  const float infinity = std::numeric_limits<float>::infinity();
  struct Case {
    const char* type;
    std::string bytes;
    std::vector<float> values;
  };
  for (const Case& c : std::vector<Case>{
           {"F16",
            bytes_of<uint16_t>({0x3C00, 0xC500, 0x7BFF, 0x0001, 0x83FF, 0x8000, 0x7C00, 0x3555}),
            {1, -5, 65504, 0x1p-24F, -1023 * 0x1p-24F, -0.0F, infinity, 0x1.554p-2F}},
           {"BF16",
            bytes_of<uint16_t>({0x3F80, 0xC0A0, 0x0001, 0xFF80}),
            {1, -5, 0x1p-133F, -infinity}},
           {"F64", bytes_of<double>({0.1, -1e300, 1e-50, 3}), {0.1F, -infinity, 0, 3}}}) {
    SCOPED_TRACE(c.type);
    const auto reader =
        open_arrays(write("a.safetensors", safetensors("a", c.type, c.values.size(), c.bytes)));
    const std::vector<float> values = reader->values(reader->contents().arrays.at("a"));
    EXPECT_EQ(values, c.values);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::signbit(values[i]), std::signbit(c.values[i])) << i;
    }
  }
  const auto reader =
      open_arrays(write("a.safetensors", safetensors("a", "F16", 1, bytes_of<uint16_t>({0x7E00}))));
  EXPECT_TRUE(std::isnan(reader->values(reader->contents().arrays.at("a")).at(0)));
}

TEST_F(Arrays, OfIntegersAreLeftOutAndOthersRefusedByType) {
  const auto counter = write("a.safetensors", safetensors("a", "I64", 1, std::string(8, '\1')));
  EXPECT_TRUE(open_arrays(counter)->contents().arrays.empty());
  EXPECT_THAT(message_of([&] {
                (void)open_arrays(write("a.safetensors", safetensors("a", "F8_E4M3", 1, "x")));
              }),
              AllOf(HasSubstr("array 'a' has type \"F8_E4M3\""), HasSubstr("F16, BF16 and F64")));
}

TEST_F(Arrays, OfShardsAreFoundByTheIndex) {
  write("1.safetensors", safetensors("a", "F32", 2, bytes_of<float>({1, 2})));
  write("2.safetensors", safetensors("b", "BF16", 1, bytes_of<uint16_t>({0x4040})));
  const auto index = write(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":10},"weight_map":{"b":"2.safetensors","a":"1.safetensors"}})");
  const auto reader = open_arrays(index);
  const auto& arrays = reader->contents().arrays;
  EXPECT_EQ(reader->values(arrays.at("a")), (std::vector<float>{1, 2}));
  EXPECT_EQ(reader->values(arrays.at("b")), std::vector<float>{3});
}

TEST_F(Arrays, OfAnIndexThatLeadsElsewhereAreRefused) {
  struct Case {
    const char *map, *reason;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"weight_map":{"a":"../1.safetensors"}})", "which must lie in its own folder"},
           {R"({"weight_map":{"a":"/etc/passwd"}})", "which must lie in its own folder"},
           {R"({"weight_map":{"a":".."}})", "which must lie in its own folder"},
           {R"({"weight_map":{"a":"1.safetensors"}})", "'1.safetensors', which is missing"},
           {R"({"weight_map":{"a":3}})", "'weight_map.a' is the number 3, not a text"},
           {R"({})", "'weight_map' is missing"},
           {R"([)", "is not an index of safetensors"}}) {
    const auto index = write("model.safetensors.index.json", c.map);
    EXPECT_THAT(message_of([&] { (void)open_arrays(index); }),
                AllOf(HasSubstr(index.string()), HasSubstr(c.reason)));
  }
}

TEST_F(Arrays, OfAWrappedModuleHaveItsOwnNames) {
  const auto names = [&](const std::string& name) {
    return open_arrays(write("a.safetensors", safetensors(name, "F32", 1, std::string(4, '\0'))))
        ->contents()
        .arrays;
  };
  EXPECT_THAT(names("module.fc.bias"), UnorderedElementsAre(Key("fc.bias")));
  EXPECT_THAT(names("_orig_mod.module.fc.bias"), UnorderedElementsAre(Key("fc.bias")));
  EXPECT_THAT(names("modules.fc.bias"), UnorderedElementsAre(Key("modules.fc.bias")));
}

}  // namespace
}  // namespace tandem
