#include "core/formats/foreign_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/open_arrays.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ForeignWeights, AreToldByTheirFirstBytesAndNamedWithTheWayOut) {
  const TempFolder folder;
  const auto told = [&](const std::string& name, const std::string& bytes) {
    const auto file = folder.write(name, bytes);
    return message_of([&] { (void)open_arrays(file); });
  };
  EXPECT_THAT(told("a.safetensors", "version https://git-lfs.github.com/spec/v1\nsize 9\n"),
              AllOf(HasSubstr("a pointer of Git LFS"), HasSubstr("git lfs pull")));
  EXPECT_THAT(told("b.pth", "<!DOCTYPE html><html>"), HasSubstr("a web page"));
  EXPECT_THAT(told("c.h5", std::string("\x89HDF\r\n\x1a\n more", 13)),
              AllOf(HasSubstr("as Keras writes them"), HasSubstr("export the model as ONNX")));
  EXPECT_THAT(told("d.pkl", "\x80\x04}."), HasSubstr("torch.save(model.state_dict()"));
  EXPECT_THAT(told("e.keras", "PK\3\4"), HasSubstr("a file of Keras"));
  EXPECT_THAT(told("g.pth", ""), HasSubstr("g.pth' cannot be used: it is empty (0 bytes)"));
  EXPECT_THAT(told("g.caffemodel", ""), HasSubstr("it is empty (0 bytes)"));
  EXPECT_THAT(told("f.weights", std::string(32, '\1')), HasSubstr("a file of Darknet"));
}

TEST(ForeignWeights, AreNotFilesThatAReaderTakes) {
  const TempFolder folder;
  EXPECT_THAT(foreign_weights(folder.write("a.weights", std::string("\2\0\0\0\0\0\0\0{}", 10))),
              IsEmpty());
  EXPECT_THAT(foreign_weights(folder.write(
                  "b.pth", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M")),
              IsEmpty());
  EXPECT_THAT(foreign_weights(folder.write("c.weights", "\x0a\x03net")), IsEmpty());
  EXPECT_THAT(foreign_weights(folder.write("d.params", "PK\3\4")), IsEmpty());
  // A header of 640 bytes, whose length begins as a pickle does.
  const std::string length("\x80\2\0\0\0\0\0\0", 8);
  EXPECT_THAT(foreign_weights(folder.write("e.bin", length + "{" + std::string(700, ' '))),
              IsEmpty());
  EXPECT_THAT(foreign_weights(folder / "none"), IsEmpty());
}

}  // namespace
}  // namespace tandem
