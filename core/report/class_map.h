// Where a picture speaks for a class. A net that ends in a global average pooling and a linear
// classifier has class activation maps (Zhou et al. 2016, arXiv:1512.04150): the sum of the last
// feature maps, weighted as the classifier weighs their means for the class. For any other net each
// part of the picture is covered in turn, and the map is how much the probability of the class
// falls (occlusion; Zeiler and Fergus 2014, arXiv:1311.2901). Neither needs gradients.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/file/definition.h"
#include "core/plugin/registry.h"
#include "core/report/display.h"

namespace tandem {

// Rows of values from 0 (least) to 1 (most), over the whole picture.
struct ClassMap {
  int64_t width = 0, height = 0;
  std::vector<float> values;
};

// The map at width x height places, smooth, from 0 to 1.
[[nodiscard]] ClassMap smoothed(const ClassMap& map, int64_t width, int64_t height);
// The color of a value: dark for 0, over red to light yellow for 1.
[[nodiscard]] std::array<double, 3> map_color(double value);
// The smooth map in these colors.
[[nodiscard]] DrawnPicture map_picture(const ClassMap& map);

// Computes maps on the default kind of device, in float32.
class ClassMapper {
 public:
  // `weights`: the whole array of build_net(definition). `sample`: the shape of the net's images.
  // `may_occlude`: false refuses a net without class activation maps, whose maps cost many passes.
  // Error for a net that cannot be explained, with the reason.
  ClassMapper(Registry& registry, const NetDefinition& definition, const Shape& sample,
              const std::vector<float>& weights, bool may_occlude);
  ~ClassMapper();
  ClassMapper(ClassMapper&&) noexcept;

  // "class activation maps of layer 'res5b'", "occlusion"
  [[nodiscard]] const std::string& method() const;
  // Of a sample's floats (C,H,W), for a class.
  [[nodiscard]] ClassMap map(const std::vector<float>& pixels, int64_t label);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
