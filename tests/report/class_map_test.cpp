// What a net looks at: nets that learn whether a blob somewhere in a picture is bright or dark, and
// maps that have to be hot where it is.
#include "core/report/class_map.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/model/passes/build_net.h"
#include "core/report/explained.h"
#include "core/session/session.h"
#include "tests/support/run_support.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr int side = 32, blob = 8;

// The corner of the blob in picture `number`.
std::pair<int, int> blob_of(int number) {
  Random random(static_cast<uint64_t>(number), 7);
  return {static_cast<int>(random.below(side - blob)), static_cast<int>(random.below(side - blob))};
}

void draw_blob(const std::filesystem::path& file, int number, bool bright) {
  Random random(static_cast<uint64_t>(number), 8);
  const auto [left, top] = blob_of(number);
  std::ofstream stream(file, std::ios::binary);
  stream << "P6\n" << side << " " << side << "\n255\n";
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const bool is_in = x >= left && x < left + blob && y >= top && y < top + blob;
      const int value = (is_in ? bright ? 220 : 20 : 120) + static_cast<int>(random.below(20));
      for (int c = 0; c < 3; ++c) stream.put(static_cast<char>(value));
    }
  }
}

class ClassMaps : public test::Runs {
 protected:
  static void SetUpTestSuite() {
    Runs::SetUpTestSuite();
    for (const char* split : {"train", "val"}) {
      for (const bool bright : {false, true}) {
        const auto folder = folder_->path() / "blobs" / split / (bright ? "bright" : "dark");
        std::filesystem::create_directories(folder);
        const bool trains = split == std::string("train");
        for (int i = 0; i < (trains ? 60 : 10); ++i) {
          const int number = i + (trains ? 100 : 0) + (bright ? 1000 : 0);
          draw_blob(folder / (std::to_string(number) + ".ppm"), number, bright);
        }
      }
    }
  }

  // The run folder of a net with this end, trained on the blobs.
  static std::filesystem::path trained(const std::string& pooling) {
    const std::string filler = "weight_filler { type: \"msra\" }";
    const std::string conv = "convolution_param { num_output: 8 kernel_size: 5 pad: 2 " + filler;
    TrainOptions o = test::short_run(*folder_, 120);
    o.data = (folder_->path() / "blobs").string();
    o.rate = 0.02;
    o.test_interval = 60;
    o.data_parameters = {{"scale", "0.02"}, {"mean", "128"}};
    o.net_text =
        NetWriter("blobs")
            .data(side)
            .layer("conv1", "Convolution", conv + " stride: 2 }")
            .layer("relu1", "ReLU", {"conv1"}, {"conv1"})
            .layer("conv2", "Convolution", conv + " }")
            .layer("relu2", "ReLU", {"conv2"}, {"conv2"})
            .layer("pool", "Pooling", "pooling_param { pool: AVE " + pooling + " }")
            .layer("score", "InnerProduct", "inner_product_param { num_output: 2 " + filler + " }")
            .loss()
            .text();
    Observer quiet;
    return train(o, quiet).run;
  }

  // Of the validation pictures, how many are hot inside their blob (or within `slack` pixels).
  static int hot_blobs(const std::filesystem::path& run, const std::string& method, int slack) {
    Registry registry = Registry::with_defaults();
    const NetDefinition definition = read_net(run / "net.prototxt");
    NetOptions options{TANDEM_TEST, 1, {1, 3, side, side}, ""};
    const Net net = build_net(definition, registry, options);
    std::vector<float> weights(static_cast<size_t>(net.weight_floats));
    const test::Weights saved = test::weights_in(run / "last.safetensors");
    for (const WeightArray& array : net.weights) {
      const std::vector<float>& values = saved.at(array.name);
      std::copy(values.begin(), values.end(), weights.begin() + array.offset);
    }
    ClassMapper mapper(registry, definition, options.data, weights, true);
    EXPECT_THAT(mapper.method(), HasSubstr(method));
    int hot = 0;
    for (int i = 0; i < 20; ++i) {
      const int number = i % 10 + (i < 10 ? 0 : 1000);
      const auto [left, top] = blob_of(number);
      std::vector<float> pixels(3 * side * side);
      for (int at = 0; at < 3 * side * side; ++at) {
        const int x = at % side, y = at / side % side;
        const bool is_in = x >= left && x < left + blob && y >= top && y < top + blob;
        pixels[static_cast<size_t>(at)] = is_in ? (i < 10 ? -2.0F : 2.0F) : 0.0F;
      }
      const ClassMap map = mapper.map(pixels, i < 10 ? 1 : 0);  // bright is class 0
      const auto hottest =
          std::max_element(map.values.begin(), map.values.end()) - map.values.begin();
      const double x = (static_cast<double>(hottest % map.width) + 0.5) * side / double(map.width);
      const double y = (static_cast<double>(hottest / map.width) + 0.5) * side / double(map.height);
      const bool is_hot = x >= left - slack && x < left + blob + slack && y >= top - slack &&
                          y < top + blob + slack;
      hot += is_hot ? 1 : 0;
      EXPECT_FLOAT_EQ(map.values[static_cast<size_t>(hottest)], 1);
    }
    return hot;
  }
};

TEST_F(ClassMaps, OfANetWithGlobalPoolingAreHotWhereTheBlobIs) {
  EXPECT_GE(hot_blobs(trained("global_pooling: true"), "class activation maps of 'conv2'", 3), 18);
}

TEST_F(ClassMaps, OfAnotherNetAreMadeByOcclusion) {
  const auto run = trained("kernel_size: 4 stride: 4");
  EXPECT_GE(hot_blobs(run, "occlusion", 5), 18);
  EXPECT_THAT(test::read_text(run / "report.html"),
              HasSubstr("no global average pooling before its classifier"));
}

TEST(ExplainedPicture, IsThePhotoBesideItsMapAboveItsClass) {
  const DrawnPicture photo{400, 300, std::vector<unsigned char>(3 * 400 * 300, 100)};
  // The net saw the middle square, whose right half speaks for the class.
  const ClassMap map{2, 1, {0, 1}};
  const DrawnPicture drawn = explained_picture(photo, map, {0.125, 0, 0.75, 1}, "DAISY 97.3 %");
  EXPECT_EQ(drawn.width, 800);
  EXPECT_GT(drawn.height, 300);
  const auto pixel = [&](int64_t x, int64_t y) {
    const unsigned char* at = &drawn.pixels[size_t(3 * (y * drawn.width + x))];
    return std::array<int, 3>{at[0], at[1], at[2]};
  };
  EXPECT_EQ(pixel(10, 10), (std::array<int, 3>{100, 100, 100}));
  EXPECT_GT(pixel(400 + 340, 150)[0], 150);  // hot
  EXPECT_LT(pixel(400 + 60, 150)[0], 80);    // cold
  EXPECT_EQ(pixel(400 + 20, 150)[0], 25);    // not seen
  int letters = 0;
  for (int64_t y = 300; y < drawn.height; ++y) {
    for (int64_t x = 0; x < drawn.width; ++x) letters += pixel(x, y)[0] < 60 ? 1 : 0;
  }
  EXPECT_GT(letters, 300);
}

TEST(ExplainedPicture, OfASmallPhotoIsReadable) {
  const DrawnPicture photo{2, 2, std::vector<unsigned char>(12, 100)};
  const DrawnPicture drawn = explained_picture(photo, {1, 1, {1}}, {}, "A");
  EXPECT_GE(drawn.width, 448);
  EXPECT_EQ(drawn.pixels.size(), static_cast<size_t>(3 * drawn.width * drawn.height));
  EXPECT_GT(drawn.pixels[size_t(3 * 300)], 150);  // red of the hot end
}

TEST(ExplainedPicture, KnowsWhichPartOfThePhotoTheNetSaw) {
  const auto part = [](const center_crop::Wanted& wanted) {
    return seen_part(center_crop::middle_of(400, 200, wanted), 400, 200, wanted.width,
                     wanted.height);
  };
  const SeenPart crop = part({100, 100, 100, 0, center_crop::Fit::crop});
  EXPECT_DOUBLE_EQ(crop.left, 0.25);
  EXPECT_DOUBLE_EQ(crop.width, 0.5);
  EXPECT_DOUBLE_EQ(crop.height, 1);
  const SeenPart pad = part({100, 100, 0, 0, center_crop::Fit::pad});  // bars above and below
  EXPECT_DOUBLE_EQ(pad.left, 0);
  EXPECT_DOUBLE_EQ(pad.top, -0.5);
  EXPECT_DOUBLE_EQ(pad.height, 2);
}

TEST(ClassMap, IsDrawnWithoutEdgesBetweenItsCells) {
  const ClassMap map{4, 4, {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  const ClassMap fine = smoothed(map, 64, 64);
  float most = 0;  // second difference: a line between two cells' values has a corner at each
  for (int64_t x = 1; x + 1 < 64; ++x) {
    const auto at = [&](int64_t column) { return fine.values[size_t(24 * 64 + column)]; };
    most = std::max(most, std::abs(at(x - 1) - 2 * at(x) + at(x + 1)));
  }
  EXPECT_LT(most, 0.02F);
  EXPECT_FLOAT_EQ(*std::max_element(fine.values.begin(), fine.values.end()), 1);
}

}  // namespace
}  // namespace tandem
