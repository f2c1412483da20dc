#include <algorithm>
#include <iomanip>
#include <sstream>

#include "bench/report.h"
#include "bench/svg.h"

namespace optim_offload::bench {

namespace {

using Cells = std::vector<std::string>;

std::string fixed(const std::optional<double>& value, int decimals, double scale = 1) {
  if (!value) return "-";
  std::ostringstream out;
  out << std::fixed << std::setprecision(decimals) << *value * scale;
  return out.str();
}

std::string mib(const std::optional<Memory>& memory, int64_t Memory::*member) {
  return memory ? fixed(static_cast<double>((*memory).*member) / kMiB, 0) : "-";
}

Cells header() {
  return {"model",     "optimizer", "mode",      "first s", "step ms", "min ms",
          "p10 ms",    "p90 ms",    "limit ms",  "ratio",   "up GB/s", "down GB/s",
          "alloc MiB", "rsvd MiB",  "pin/state", "host %",  "pieces"};
}

Cells cells(const Row& row) {
  return {row.model,
          row.optimizer,
          row.mode,
          fixed(row.first_step_s, 3),
          fixed(row.step_s.median, 2, 1e3),
          fixed(row.step_s.min, 2, 1e3),
          fixed(row.step_s.p10, 2, 1e3),
          fixed(row.step_s.p90, 2, 1e3),
          fixed(row.limit_s, 2, 1e3),
          fixed(row.step_over_limit(), 3),
          fixed(row.h2d_gb_per_s, 1),
          fixed(row.d2h_gb_per_s, 1),
          mib(row.vram(), &Memory::allocated),
          mib(row.vram(), &Memory::reserved),
          fixed(row.pinned_over_state, 4),
          fixed(row.host_share, 1, 100),
          std::to_string(row.pieces)};
}

// Words to the left, figures to the right.
std::string aligned(const std::vector<Cells>& lines, size_t left_columns) {
  std::vector<size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::ostringstream out;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      out << (i == 0 ? "" : "  ") << (i < left_columns ? std::left : std::right)
          << std::setw(static_cast<int>(widths[i])) << line[i];
    }
    out << "\n";
  }
  return out.str();
}

void write_link(std::ostream& out, const LinkRow& link) {
  const LinkTimes& times = link.times;
  const auto rate = [&](double seconds) {
    return fixed(static_cast<double>(times.bytes) * 1e-9 / seconds, 1);
  };
  out << "link, " << link.model << " " << link.optimizer << " ("
      << fixed(static_cast<double>(times.bytes) / kMiB, 0) << " MiB each way): up "
      << rate(times.h2d_s) << ", down " << rate(times.d2h_s) << ", both at once "
      << rate(times.both_s) << " GB/s each way\n";
}

void write_extras(std::ostream& out, const Row& row) {
  const std::string what = row.model + " " + row.optimizer + " " + row.mode + ": ";
  if (!row.oversize_piece.empty()) {
    out << what << "a piece of " << fixed(static_cast<double>(row.largest_piece_bytes) / kMiB, 0)
        << " MiB exceeds the bound, from " << row.oversize_piece << "\n";
  }
  if (row.soak) {
    const auto change = [&](int64_t before, int64_t after) {
      return fixed(static_cast<double>(before) / kMiB, 1) + " -> " +
             fixed(static_cast<double>(after) / kMiB, 1) + " MiB";
    };
    out << what << "over " << row.soak->steps << " steps reserved "
        << change(row.soak->device_before.reserved, row.soak->device_after.reserved) << ", host "
        << change(row.soak->host_before, row.soak->host_after)
        << (row.soak->grew() ? ": GREW" : ": constant") << "\n";
  }
  if (row.save_vram_bytes) {
    out << what << "save() took " << fixed(row.save_s, 2) << " s and "
        << fixed(static_cast<double>(*row.save_vram_bytes) / kMiB, 1) << " MiB of GPU memory\n";
  }
}

}  // namespace

std::string to_table(const Report& report) {
  std::ostringstream out;
  if (report.environment.simulated) {
    out << "SIMULATED: no GPU was used; the times below mean nothing.\n";
  }
  out << report.environment.gpu << ", driver " << report.environment.driver << ", torch "
      << report.environment.torch << ", " << report.environment.date << "; pieces of "
      << report.piece_mib << " MiB, " << report.slots << " slots\n";
  for (const auto& link : report.links) write_link(out, link);
  std::vector<Cells> lines = {header()};
  for (const auto& row : report.rows) lines.push_back(cells(row));
  out << "\n" << aligned(lines, 3);
  out << "ratio: median over the limit, which is measured in turn with the steps (streamed: both "
         "directions at once; all-at-once and sequential: up alone + resident step + down alone). "
         "Memory: peak over weights + gradients.\n";
  for (const auto& row : report.rows) write_extras(out, row);
  for (const auto& note : report.notes) out << "note: " << note << "\n";
  return out.str();
}

}  // namespace optim_offload::bench
