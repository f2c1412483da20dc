#include <gtest/gtest.h>

// What ctest shows as "Skipped"; the entries set SKIP_RETURN_CODE to it.
constexpr int kAllSkipped = 77;

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& run = *testing::UnitTest::GetInstance();
  const bool all_skipped =
      run.skipped_test_count() > 0 && run.skipped_test_count() == run.test_to_run_count();
  return result == 0 && all_skipped ? kAllSkipped : result;
}
