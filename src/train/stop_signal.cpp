#include "train/stop_signal.h"

namespace optim_offload::train {
namespace {

volatile std::sig_atomic_t g_received = 0;

void on_signal(int signal) { g_received = signal; }

}  // namespace

StopSignal::StopSignal() {
  g_received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

int StopSignal::received() const { return g_received; }

const char* StopSignal::name() const { return g_received == SIGTERM ? "SIGTERM" : "SIGINT"; }

}  // namespace optim_offload::train
