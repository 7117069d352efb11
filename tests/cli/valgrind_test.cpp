// Valgrind sees no mistake of memory in the plugin in plain C that the guide shows, while `tandem
// plugin check` uses all of it; and it would see one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

// Valgrind does not run programs of a sanitizer.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::Outcome;
using test::replaced;
using testing::AllOf;
using testing::HasSubstr;

class Valgrind : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("valgrind --version > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "there is no valgrind (Debian: valgrind)";
    }
  }

  // The first block of code of the guide that begins as this file does.
  static std::string example() {
    const std::string guide = test::read_text(test::source_folder() / "docs/guide/plain_c.md");
    const size_t begin = guide.find("/* acme_leaky.c: ");
    return guide.substr(begin, guide.find("```", begin) - begin);
  }

  // `tandem plugin check` of a module of this source, under Valgrind, which is slow: one shape.
  [[nodiscard]] Outcome check(const std::string& source) const {
    desk_.write("acme_leaky.c", source);
    // glibc's own strncmp for the dynamic loader reads whole words.
    desk_.write("known.supp", "{\n  words\n  Memcheck:Addr8\n  fun:strncmp\n  fun:is_dst\n}\n");
    desk_.make_folder("include");
    fs::create_directory_symlink(test::source_folder(), desk_ / "include/tandem");
    const std::string build = fmt::format(
        "cd '{}' && {} -std=c11 -g -O1 -fPIC -shared -fvisibility=hidden -I include acme_leaky.c "
        "-o acme_leaky.so",
        (desk_ / "").string(), TANDEM_C_COMPILER);
    EXPECT_EQ(std::system(build.c_str()), 0);
    return desk_.tandem("plugin check ./acme_leaky.so --input 2x3x4x4 --patience 600",
                        "valgrind --quiet --leak-check=full --show-leak-kinds=definite "
                        "--errors-for-leak-kinds=definite --keep-debuginfo=yes "
                        "--suppressions=known.supp");
  }
  Desk desk_;
};

TEST_F(Valgrind, FindsNoMistakeInThePluginInPlainC) {
  const Outcome outcome = check(example());
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("kept   input gradients"));
  EXPECT_EQ(outcome.errors, "");
}

TEST_F(Valgrind, FindsAKernelThatIsNotReleasedAndOneThatIsNotFilled) {
  std::string source = replaced(example(), "free(handle);", "(void)handle;");
  source = replaced(source, "self->slope = (float)slope;", "(void)slope;");
  const std::string errors = check(source).errors;
  EXPECT_THAT(errors, AllOf(HasSubstr("definitely lost"), HasSubstr("prepare (acme_leaky.c:")));
  EXPECT_THAT(errors, AllOf(HasSubstr("uninitialised value"), HasSubstr("(acme_leaky.c:")));
}

}  // namespace
}  // namespace tandem

#endif
