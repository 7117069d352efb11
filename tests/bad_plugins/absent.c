/* The library that missing_library.c needs and that the loader does not find. */
int tandem_test_absent(void);
int tandem_test_absent(void) {
  return 0;
}
