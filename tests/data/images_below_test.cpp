// Lists whose images lie in folders beside them, as those of HAM10000.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include "tests/data/list_fixture.h"

namespace tandem {
namespace {

using test::open_images;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* part_1 = "HAM10000_images_part_1/";
constexpr const char* part_2 = "HAM10000_images_part_2/";

class ImagesBelow : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* path :
         {"HAM10000_images_part_1/ISIC_1.jpg", "HAM10000_images_part_1/ISIC_2.jpg",
          "HAM10000_images_part_2/ISIC_3.jpg", "images_001/images/4_000.png"}) {
      put(path);
    }
  }
  void put(const std::string& path) const {
    const std::string extension = path.substr(path.rfind('.'));
    (void)folder_.write(path, test::encoded(extension, test::gradient(9, 9)));
  }
  [[nodiscard]] DatasetOptions list(const std::string& text) const {
    DatasetOptions options = test::image_options(folder_.write("metadata.csv", text).string());
    options.parameters = {{"val_fraction", "0"}};
    return options;
  }

  test::TempFolder folder_;
};

TEST_F(ImagesBelow, HoldTheImagesThatAListNamesByTheirStems) {
  const Dataset data =
      open_images(list("lesion_id,image_id,dx,age\nHAM_1,ISIC_1,mel,80\nHAM_1,ISIC_2,nv,80\n"
                       "HAM_2,ISIC_3,nv,\n"));
  EXPECT_THAT(data.class_names(), ElementsAre("mel", "nv"));
  EXPECT_EQ(data.sample_name(0), folder_ / part_1 / "ISIC_1.jpg");
  EXPECT_EQ(data.sample_name(2), folder_ / part_2 / "ISIC_3.jpg");
  EXPECT_EQ(test::get(data).status, SampleStatus::good);
  EXPECT_THAT(data.notes(), HasSubstr("metadata.csv': its images are found in folders: 2 in "
                                      "HAM10000_images_part_1, 1 in HAM10000_images_part_2"));
}

TEST_F(ImagesBelow, MayBeInFolders) {
  const Dataset data = open_images(list("Image Index,label\n4_000.png,a\nISIC_1.jpg,b\n"));
  EXPECT_EQ(data.sample_name(0), folder_ / "images_001/images/4_000.png");
}

TEST_F(ImagesBelow, WithTwoFilesOfAStemAreRefusedWithBoth) {
  put("HAM10000_images_part_2/isic_1.JPG");
  EXPECT_THAT(test::refusal(list("image_id,dx\nISIC_1,nv\nISIC_3,mel\n")),
              AllOf(HasSubstr("metadata.csv': 'ISIC_1' may be '" +
                              (folder_ / part_1 / "ISIC_1.jpg").string()),
                    HasSubstr("' or '" + (folder_ / part_2 / "isic_1.JPG").string())));
  // The extension tells.
  put("HAM10000_images_part_2/ISIC_2.png");
  const Dataset data = open_images(list("path,dx\nISIC_2.jpg,mel\nISIC_3.jpg,nv\n"));
  EXPECT_EQ(data.sample_name(0), folder_ / part_1 / "ISIC_2.jpg");
}

TEST_F(ImagesBelow, AreNotLookedIntoWhereImagesAreBesideTheList) {
  put("ISIC_9.jpg");
  const Dataset data = open_images(list("path,dx\nISIC_9.jpg,mel\nISIC_1.jpg,nv\n"));
  EXPECT_EQ(data.sample_name(1), folder_ / "ISIC_1.jpg");
}

TEST_F(ImagesBelow, AreNoClassesBesideAList) {
  std::filesystem::remove_all(folder_ / "images_001");
  (void)folder_.write("metadata.csv", "image_id,dx\n");
  const DatasetOptions options = test::image_options(folder_.string());
  EXPECT_THAT(test::refusal(options),
              AllOf(HasSubstr("'HAM10000_images_part_1' and 'HAM10000_images_part_2' differ by a "
                              "number alone"),
                    HasSubstr("metadata.csv' has the classes, give it as --data")));
  std::filesystem::remove(folder_ / "metadata.csv");
  EXPECT_EQ(open_images(options).class_count(), 2);
}

}  // namespace
}  // namespace tandem

#endif
