/* A shared library, but not a plugin. */
#include "minimal.h"

TEST_EXPORT int something_else(void);
int something_else(void) {
  return 1;
}
