// Files of torch.save(): those in tests/reference/torch, and pickles made here that PyTorch never
// writes.
#include "core/formats/open_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/files/files.h"
#include "tests/support/folders.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Key;
using testing::UnorderedElementsAre;

fs::path stored(const std::string& name) {
  return test::source_folder() / "tests/reference/torch" / name;
}

std::vector<float> values(const ArrayReader& reader, const std::string& name) {
  return reader.values(reader.contents().arrays.at(name));
}

void expect_weights(const fs::path& file, float first = 0) {
  SCOPED_TRACE(file.string());
  const auto reader = open_arrays(file);
  ASSERT_NE(reader, nullptr);
  ASSERT_THAT(reader->contents().arrays, UnorderedElementsAre(Key("fc.weight"), Key("fc.bias")));
  EXPECT_EQ(reader->contents().arrays.at("fc.weight").shape, (std::vector<int64_t>{3, 2}));
  std::vector<float> weight, bias;
  for (int i = 0; i < 6; ++i) weight.push_back(first + static_cast<float>(i));
  for (int i = 0; i < 3; ++i) bias.push_back(-1 - first - static_cast<float>(i));
  EXPECT_EQ(values(*reader, "fc.weight"), weight);
  EXPECT_EQ(values(*reader, "fc.bias"), bias);
}

TEST(TorchFile, OfEveryTypeAndOfTheOldFormHasItsWeightsAndNoCounters) {
  for (const char* name : {"plain.pth", "old_form.pth", "protocol_5.pth",
                           "old_form_of_protocol_5.pth", "half.pt", "bfloat16.pt", "double.pt"}) {
    expect_weights(stored(name));
  }
}

TEST(TorchFile, OfACheckpointHasTheWeightsInItWithoutTheWrappersNames) {
  expect_weights(stored("checkpoint.pth.tar"));
  EXPECT_EQ(open_arrays(stored("checkpoint.pth.tar"))->contents().note, "those of 'state_dict'");
  expect_weights(stored("parameters.pt"));
  EXPECT_EQ(open_arrays(stored("parameters.pt"))->contents().note,
            "those of 'model', in it 'state_dict'");
}

TEST(TorchFile, WithAveragedWeightsHasTheseAndSaysSo) {
  expect_weights(stored("average.pth"), 10);
  EXPECT_EQ(open_arrays(stored("average.pth"))->contents().note,
            "those of 'model_ema' (not those of 'model')");
}

TEST(TorchFile, WithViewsOfAStorageHasTheirValues) {
  const auto reader = open_arrays(stored("views.pt"));
  EXPECT_EQ(values(*reader, "transposed"), (std::vector<float>{10, 13, 11, 14, 12, 15}));
  EXPECT_EQ(values(*reader, "part"), (std::vector<float>{25, 26, 29, 30}));
  EXPECT_EQ(values(*reader, "same"), (std::vector<float>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(values(*reader, "empty"), std::vector<float>{});
  EXPECT_EQ(values(*reader, "scalar"), std::vector<float>{2.5F});
}

TEST(TorchFile, WithoutAStateDictIsRefusedWithHowToSaveOne) {
  struct Case {
    const char *name, *reason;
  };
  for (const Case& c : std::vector<Case>{
           {"module.pt", "holds the Python object \"torch.nn.modules.linear.Linear\""},
           {"script.pt", "torch.save(torch.jit.load('model.pt').state_dict(), 'weights.pth')"},
           {"two_nets.pt", "several dicts of tensors, 'generator' and 'discriminator' among them"},
           {"no_weights.pt", "it has no dict of tensors"},
           {"tensor.pt", "it has no dict of tensors"}}) {
    EXPECT_THAT(
        message_of([&] { (void)open_arrays(stored(c.name)); }),
        AllOf(HasSubstr(stored(c.name).string()), HasSubstr(c.reason), HasSubstr("torch.save(")));
  }
}

TEST(TorchFile, WhoseRecordsAreMissingOrCompressedIsRefused) {
  struct Case {
    const char *name, *reason;
  };
  for (const Case& c :
       std::vector<Case>{{"compressed.pt", "data.pkl' is compressed or longer than the file"},
                         {"no_pickle.pt", "its zip archive has no data.pkl"},
                         {"no_storage.pt", "data/0' is missing"}}) {
    EXPECT_THAT(message_of([&] { (void)open_arrays(stored(c.name)); }), HasSubstr(c.reason));
  }
}

class TorchBytes : public testing::Test {
 protected:
  [[nodiscard]] std::string message(const std::string& bytes) const {
    const fs::path file = folder_.path() / "weights.pth";
    write_text_file(file, bytes);
    return message_of([&] {
      const auto reader = open_arrays(file);
      if (reader == nullptr) return;
      for (const auto& [name, array] : reader->contents().arrays) (void)reader->values(array);
    });
  }
  test::TempFolder folder_;
};

TEST_F(TorchBytes, CutOrChangedAnywhereAreAnErrorOrOtherWeightsAndNeverMore) {
  for (const char* name : {"plain.pth", "old_form.pth", "views.pt"}) {
    const std::string bytes = test::read_text(stored(name));
    for (size_t size = 15; size < bytes.size(); size += 3) {
      EXPECT_THAT(message(bytes.substr(0, size)), HasSubstr("weights.pth")) << name << size;
    }
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x11);
      (void)message(changed);
    }
  }
}

TEST_F(TorchBytes, WithAChangedWeightAreRefusedByTheArchivesChecksum) {
  std::string bytes = test::read_text(stored("plain.pth"));
  const float value = -2;
  const std::string_view stored_value{reinterpret_cast<const char*>(&value), sizeof(value)};
  const size_t at = bytes.find(stored_value);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = '\1';
  EXPECT_THAT(message(bytes), HasSubstr("is damaged or ends too early"));
}

// The pickle of an object in a file of the old form, with one storage "0" of two floats, if the
// object has one.
std::string old_form(const std::string& object) {
  std::string file("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  file += std::string("\x80\x02M\xe9\x03.", 6);
  file += std::string("\x80\x02}X\x0d\0\0\0little_endian\x88s.", 24);
  file += "\x80\x02" + object + ".";
  if (object.find("storage") == std::string::npos) return file + "\x80\x02].";
  file += std::string("\x80\x02]X\x01\0\0\0000a.", 11);
  return file + std::string("\2\0\0\0\0\0\0\0", 8) + std::string(8, '\0');
}

std::string text(const std::string& value) {
  return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
}

std::string integer(int64_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return std::string("\x8a\x08") + bytes;
}

// {"a": a tensor}
std::string tensor(int64_t first, const std::string& shape, const std::string& strides,
                   int64_t stored_values = 2, const std::string& key = "0") {
  return "}" + text("a") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text(key) + text("cpu") + integer(stored_values) + "tQ" +
         integer(first) + "(" + shape + "t(" + strides + "t\x89NtRs";
}

TEST_F(TorchBytes, OfATensorThatFitsAreRead) {
  EXPECT_EQ(message(old_form(tensor(0, integer(2), integer(1)))), "");
  EXPECT_EQ(message(old_form(tensor(1, integer(1), integer(5)))), "");
  std::string object = tensor(0, integer(2), integer(1));
  object.erase(object.find("_v2"), 3);  // of older versions of PyTorch
  EXPECT_EQ(message(old_form(object)), "");
}

TEST_F(TorchBytes, WhoseTensorsLieOutsideTheirStorageAreRefusedAndTakeNoMemory) {
  const int64_t huge = int64_t{1} << 60;
  const std::string outside = "does not lie in its storage";
  struct Case {
    std::string object, reason;
  };
  for (const Case& c : std::vector<Case>{
           {tensor(0, integer(3), integer(1)), outside},
           {tensor(1, integer(2), integer(1)), outside},
           {tensor(0, integer(2), integer(2)), outside},
           {tensor(0, integer(2), integer(huge)), outside},
           {tensor(0, integer(huge), integer(0)), outside},
           {tensor(0, integer(huge) + integer(huge), integer(huge) + integer(1)), outside},
           {tensor(huge, integer(1), integer(1)), outside},
           {tensor(0, integer(huge), integer(1), huge), "is missing or shorter than its tensors"},
           {tensor(0, integer(2), integer(1), INT64_MAX), outside},
           {tensor(0, integer(2), integer(1), 2, "1"), "storage '0' is of no tensor"},
           {tensor(-1, integer(1), integer(1)), "tensor 'a' is malformed"},
           {tensor(0, integer(-1), integer(1)), "tensor 'a' is malformed"},
           {tensor(0, integer(2), integer(-1)), "tensor 'a' is malformed"},
           {tensor(0, integer(2), ""), "tensor 'a' is malformed"},
           {tensor(0, "N", integer(1)), "tensor 'a' is malformed"}}) {
    EXPECT_THAT(message(old_form(c.object)), AllOf(HasSubstr("weights.pth"), HasSubstr(c.reason)));
  }
}

TEST_F(TorchBytes, ThatNameOtherPythonObjectsAreRefusedByName) {
  for (const std::string& call :
       {std::string("cos\nsystem\n") + text("touch /tmp/x") + "\x85R",
        text("os") + text("system") + "\x93" + text("true") + "\x85R",
        std::string("cbuiltins\neval\n)R"), std::string("cposix\nsystem\n")}) {
    EXPECT_THAT(message(old_form(call)), AllOf(HasSubstr("holds the Python object \""),
                                               HasSubstr("without executing anything")));
  }
  EXPECT_THAT(message(old_form("cos\nsystem\n" + text("true") + "\x85R")),
              HasSubstr("\"os.system\""));
}

TEST_F(TorchBytes, OfPicklesThatNoProgramWritesAreRefused) {
  std::string deep = "]", copies = "](";
  for (int i = 0; i < 100'000; ++i) deep += "\x85";
  for (int i = 0; i < 2'000; ++i) copies += "NN\x86";
  copies += "eq\1";
  for (int i = 0; i < 2'000; ++i) copies += "ccollections\nOrderedDict\nh\1\x85R0";
  const std::string dict_in_itself = "}q\1" + text("model") + "h\1s";
  struct Case {
    std::string object, reason;
  };
  for (const Case& c :
       std::vector<Case>{{"h\7", "it recalls what it has not read"},
                         {"t", "a mark is missing"},
                         {"s", "a value is missing"},
                         {"(N0", "a value is missing"},
                         {"}Ns", "a value is missing"},
                         {"N" + text("a") + "Ns", "items are added to what is no list or dict"},
                         {"}(Nu", "a key has no value"},
                         {"N)R", "it calls what is no function"},
                         {"ctorch\nFloatStorage\n)R", "it calls what is no function"},
                         {"ctorch._utils\n_rebuild_tensor_v2\n)R", "a tensor has no storage"},
                         {"ctorch._utils\n_rebuild_parameter\n)R", "a tensor has no values"},
                         {"P", "operation 0x50 is not of a state dict"},
                         {std::string("X\xff\xff\xff\x7f", 5), "it ends too early"},
                         {"ctorch", "it ends too early"},
                         {std::string(1'000'001, 'N'), "more than a million values"},
                         {copies, "more than a million values"},
                         {deep, "it has no dict of tensors"},
                         {dict_in_itself, "it has no dict of tensors"}}) {
    EXPECT_THAT(message(old_form(c.object)), AllOf(HasSubstr("weights.pth"), HasSubstr(c.reason)))
        << c.object.substr(0, 50);
  }
}

TEST_F(TorchBytes, OfAZipArchiveOfOtherThingsAreRefused) {
  EXPECT_THAT(message(std::string("PK\3\4") + std::string(100, 'x')),
              HasSubstr("its zip archive cannot be read"));
}

}  // namespace
}  // namespace tandem
