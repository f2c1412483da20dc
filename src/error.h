#pragma once

#include <c10/util/Exception.h>

/// TORCH_CHECK with the library's prefix: `[optim_offload] what happened (values); what to do`.
#define OFFLOAD_CHECK(condition, ...) TORCH_CHECK(condition, "[optim_offload] ", __VA_ARGS__)
