#include "optimizers/muon_checks.h"

#include <tuple>

#include <c10/util/Exception.h>

namespace optim_offload {
namespace {

void check_decay_rate(const char* name, double rate) {
  TORCH_CHECK(rate >= 0 && rate < 1, "[optim_offload] Muon: ", name, " = ", rate,
              " must be at least 0 and below 1");
}

void check_not_negative(const char* name, double value) {
  TORCH_CHECK(value >= 0, "[optim_offload] Muon: ", name, " = ", value, " must be at least 0");
}

}  // namespace

void check_muon_options(const MuonOptions& options) {
  check_not_negative("lr", options.lr());
  check_not_negative("weight_decay", options.weight_decay());
  check_not_negative("momentum", options.momentum());
  check_not_negative("eps", options.eps());
  check_not_negative("adamw_eps", options.adamw_eps());
  check_decay_rate("adamw_betas[0]", std::get<0>(options.adamw_betas()));
  check_decay_rate("adamw_betas[1]", std::get<1>(options.adamw_betas()));
  TORCH_CHECK(options.ns_steps() >= 0 && options.ns_steps() < 100,
              "[optim_offload] Muon: ns_steps = ", options.ns_steps(), " must be from 0 to 99");
  TORCH_CHECK(options.adjust_lr_fn() == "original" || options.adjust_lr_fn() == "match_rms_adamw",
              "[optim_offload] Muon: adjust_lr_fn = \"", options.adjust_lr_fn(),
              "\" must be \"original\" or \"match_rms_adamw\"");
}

}  // namespace optim_offload
