// So that a build without CUDA says that the tests of CUDA are not in it.
#ifndef OPTIM_OFFLOAD_CUDA

#include <gtest/gtest.h>

TEST(Cuda, NotBuilt_CUDA) { GTEST_SKIP() << "built without CUDA"; }

#endif
