#pragma once
// Precompiled for the project's own build only; sources still include what they use.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/types.h>
