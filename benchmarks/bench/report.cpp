#include "bench/report.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace optim_offload::bench {

namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json mib(int64_t bytes) { return static_cast<double>(bytes) / kMiB; }

json mib(const std::optional<Memory>& memory, int64_t Memory::*member) {
  return memory ? mib((*memory).*member) : json(nullptr);
}

json link_times(const LinkTimes& times) {
  const auto measured = [](double seconds) { return seconds > 0 ? json(seconds) : json(nullptr); };
  return {{"h2d_s", measured(times.h2d_s)},
          {"d2h_s", measured(times.d2h_s)},
          {"both_s", measured(times.both_s)}};
}

double gb_per_s(int64_t bytes, double seconds) {
  return static_cast<double>(bytes) * 1e-9 / seconds;
}

// The figures of the largest transfer stand for the link; small ones are listed beside them.
json link_json(const std::vector<LinkRow>& links) {
  json out = {{"copy_mib", kLinkCopyBytes >> 20}, {"measured", json::array()}};
  const LinkRow* largest = nullptr;
  for (const auto& link : links) {
    out["measured"].push_back({{"model", link.model},
                               {"optimizer", link.optimizer},
                               {"bytes_each_way", link.times.bytes},
                               {"times", link_times(link.times)}});
    if (largest == nullptr || link.times.bytes > largest->times.bytes) largest = &link;
  }
  if (largest != nullptr) {
    const LinkTimes& times = largest->times;
    out["h2d_gb_per_s"] = gb_per_s(times.bytes, times.h2d_s);
    out["d2h_gb_per_s"] = gb_per_s(times.bytes, times.d2h_s);
    out["both_gb_per_s_each_way"] = gb_per_s(times.bytes, times.both_s);
  }
  return out;
}

json soak_json(const std::optional<Soak>& soak) {
  if (!soak) return nullptr;
  return {{"steps", soak->steps},
          {"vram_allocated_before_mib", mib(soak->device_before.allocated)},
          {"vram_allocated_after_mib", mib(soak->device_after.allocated)},
          {"vram_reserved_before_mib", mib(soak->device_before.reserved)},
          {"vram_reserved_after_mib", mib(soak->device_after.reserved)},
          {"host_before_mib", mib(soak->host_before)},
          {"host_after_mib", mib(soak->host_after)}};
}

json row_json(const Row& row) {
  const auto save_mib = row.save_vram_bytes ? mib(*row.save_vram_bytes) : json(nullptr);
  return {{"model", row.model},
          {"mode", row.mode},
          {"optimizer", row.optimizer},
          {"dtype", row.dtype},
          {"parameters", row.parameters},
          {"state_mib", mib(row.state_bytes)},
          {"construct_s", row.construct_s},
          {"first_step_s", row.first_step_s},
          {"step_s", row.step_s.median},
          {"step_min_s", row.step_s.min},
          {"step_p10_s", row.step_s.p10},
          {"step_p90_s", row.step_s.p90},
          {"step_max_s", row.step_s.max},
          {"steps", row.step_s.count},
          {"limit_s", or_null(row.limit_s)},
          {"limit", row.limit},
          {"link", link_times(row.link)},
          {"step_over_limit", or_null(row.step_over_limit())},
          {"device_step_s", or_null(row.device_step_s)},
          {"h2d_gb_per_s", or_null(row.h2d_gb_per_s)},
          {"d2h_gb_per_s", or_null(row.d2h_gb_per_s)},
          {"host_share", or_null(row.host_share)},
          {"queue_share", or_null(row.queue_share)},
          {"vram_allocated_mib", mib(row.vram(), &Memory::allocated)},
          {"vram_reserved_mib", mib(row.vram(), &Memory::reserved)},
          {"first_step_vram_allocated_mib", mib(row.first_vram, &Memory::allocated)},
          {"first_step_vram_reserved_mib", mib(row.first_vram, &Memory::reserved)},
          {"later_vram_allocated_mib", mib(row.later_vram, &Memory::allocated)},
          {"later_vram_reserved_mib", mib(row.later_vram, &Memory::reserved)},
          {"pinned_over_state", or_null(row.pinned_over_state)},
          {"pinned_mib", mib(row.pinned_bytes)},
          {"pageable_mib", mib(row.pageable_bytes)},
          {"chunks", row.chunks},
          {"pieces", row.pieces},
          {"tiles", row.tiles},
          {"largest_piece_mib", mib(row.largest_piece_bytes)},
          {"oversize_piece", row.oversize_piece},
          {"soak", soak_json(row.soak)},
          {"save_extra_vram_mib", save_mib},
          {"save_s", or_null(row.save_s)}};
}

}  // namespace

std::optional<Memory> Row::vram() const {
  if (!first_vram || !later_vram) return std::nullopt;
  return Memory{std::max(first_vram->allocated, later_vram->allocated),
                std::max(first_vram->reserved, later_vram->reserved)};
}

std::string to_json(const Report& report) {
  json rows = json::array();
  for (const auto& row : report.rows) rows.push_back(row_json(row));
  const json out = {{"environment",
                     {{"gpu", report.environment.gpu},
                      {"driver", report.environment.driver},
                      {"torch", report.environment.torch},
                      {"date", report.environment.date},
                      {"simulated", report.environment.simulated}}},
                    {"settings",
                     {{"steps", report.steps},
                      {"warmup", report.warmup},
                      {"piece_mib", report.piece_mib},
                      {"slots", report.slots},
                      {"pin", report.pin}}},
                    {"link", link_json(report.links)},
                    {"rows", rows},
                    {"notes", report.notes}};
  return out.dump(2) + "\n";
}

}  // namespace optim_offload::bench
