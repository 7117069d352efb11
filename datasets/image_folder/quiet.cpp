#include "datasets/image_folder/quiet.h"

#include <iostream>
#include <streambuf>

namespace tandem::image_folder {
namespace {

thread_local int quiet_depth = 0;

// In place of std::cerr's buffer from the first Quiet on. Never removed: another thread may be
// writing.
class Gate : public std::streambuf {
 public:
  explicit Gate(std::streambuf* behind) : behind_(behind) {}

 protected:
  int_type overflow(int_type character) override {
    if (quiet_depth > 0 || traits_type::eq_int_type(character, traits_type::eof())) {
      return traits_type::not_eof(character);
    }
    return behind_->sputc(traits_type::to_char_type(character));
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    return quiet_depth > 0 ? count : behind_->sputn(text, count);
  }
  int sync() override { return quiet_depth > 0 ? 0 : behind_->pubsync(); }

 private:
  std::streambuf* behind_;
};

void put_gate() {
  static Gate* const gate = [] {
    auto* made = new Gate(std::cerr.rdbuf());
    std::cerr.rdbuf(made);
    return made;
  }();
  static_cast<void>(gate);
}

}  // namespace

Quiet::Quiet() {
  put_gate();
  ++quiet_depth;
}

Quiet::~Quiet() {
  --quiet_depth;
}

}  // namespace tandem::image_folder
