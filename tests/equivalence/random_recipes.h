#pragma once

#include <string>

#include "equivalence/random.h"
#include "support/recipes.h"

namespace optim_offload::testing {

struct RandomRecipe : Recipe {
  bool takes_sparse = false;  ///< Sparse gradients of matrices.
};

/// An optimizer with random options; the name lists them.
RandomRecipe random_recipe(Random& random);

/// One of the three modes with random piece size and slots; `text` gets a description.
OffloadOptions random_offload_options(Random& random, std::string& text);

}  // namespace optim_offload::testing
