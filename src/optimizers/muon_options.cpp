#include <torch/optim/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "optim_offload/optimizers/muon.h"
#include "optimizers/muon_checks.h"

namespace optim_offload {
namespace {

// Undefined tensors are equal to each other only.
bool same_tensor(const torch::Tensor& a, const torch::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || torch::equal(a, b));
}

}  // namespace

MuonOptions::MuonOptions(double lr) : lr_(lr) {}

bool operator==(const MuonOptions& lhs, const MuonOptions& rhs) {
  return lhs.lr() == rhs.lr() && lhs.weight_decay() == rhs.weight_decay() &&
         lhs.momentum() == rhs.momentum() && lhs.nesterov() == rhs.nesterov() &&
         lhs.ns_coefficients() == rhs.ns_coefficients() && lhs.eps() == rhs.eps() &&
         lhs.ns_steps() == rhs.ns_steps() && lhs.adjust_lr_fn() == rhs.adjust_lr_fn() &&
         lhs.adamw() == rhs.adamw() && lhs.adamw_betas() == rhs.adamw_betas() &&
         lhs.adamw_eps() == rhs.adamw_eps() && lhs.step() == rhs.step();
}

void MuonOptions::serialize(torch::serialize::OutputArchive& archive) const {
  using torch::IValue;
  archive.write("lr", IValue(lr()));
  archive.write("weight_decay", IValue(weight_decay()));
  archive.write("momentum", IValue(momentum()));
  archive.write("nesterov", IValue(nesterov()));
  archive.write("ns_coefficients", IValue(ns_coefficients()));
  archive.write("eps", IValue(eps()));
  archive.write("ns_steps", IValue(ns_steps()));
  archive.write("adjust_lr_fn", IValue(adjust_lr_fn()));
  archive.write("adamw", IValue(adamw()));
  archive.write("adamw_betas", IValue(adamw_betas()));
  archive.write("adamw_eps", IValue(adamw_eps()));
  archive.write("step", IValue(step()));
}

void MuonOptions::serialize(torch::serialize::InputArchive& archive) {
  const auto read = [&archive](const char* name) {
    torch::IValue value;
    TORCH_CHECK(archive.try_read(name, value),
                "[optim_offload] Muon: the archive's options have no ", name,
                "; it was not written by this optimizer");
    return value;
  };
  // All are read before any is set, so that a throw leaves these options as they were.
  MuonOptions loaded;
  loaded.lr(read("lr").toDouble());
  loaded.weight_decay(read("weight_decay").toDouble());
  loaded.momentum(read("momentum").toDouble());
  loaded.nesterov(read("nesterov").toBool());
  loaded.ns_coefficients(read("ns_coefficients").to<ns_coefficients_t>());
  loaded.eps(read("eps").toDouble());
  loaded.ns_steps(read("ns_steps").toInt());
  loaded.adjust_lr_fn(read("adjust_lr_fn").toStringRef());
  loaded.adamw(read("adamw").toBool());
  loaded.adamw_betas(read("adamw_betas").to<betas_t>());
  loaded.adamw_eps(read("adamw_eps").toDouble());
  loaded.step(read("step").toInt());
  check_muon_options(loaded);
  *this = loaded;
}

double MuonOptions::get_lr() const { return lr(); }

void MuonOptions::set_lr(const double lr) { this->lr(lr); }

bool operator==(const MuonParamState& lhs, const MuonParamState& rhs) {
  return same_tensor(lhs.momentum_buffer(), rhs.momentum_buffer()) &&
         same_tensor(lhs.exp_avg(), rhs.exp_avg()) &&
         same_tensor(lhs.exp_avg_sq(), rhs.exp_avg_sq());
}

void MuonParamState::serialize(torch::serialize::OutputArchive& archive) const {
  if (momentum_buffer().defined())
    archive.write("momentum_buffer", torch::IValue(momentum_buffer()));
  if (exp_avg().defined()) archive.write("exp_avg", torch::IValue(exp_avg()));
  if (exp_avg_sq().defined()) archive.write("exp_avg_sq", torch::IValue(exp_avg_sq()));
}

void MuonParamState::serialize(torch::serialize::InputArchive& archive) {
  torch::IValue value;
  if (archive.try_read("momentum_buffer", value)) momentum_buffer(value.toTensor());
  if (archive.try_read("exp_avg", value)) exp_avg(value.toTensor());
  if (archive.try_read("exp_avg_sq", value)) exp_avg_sq(value.toTensor());
}

}  // namespace optim_offload
