#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace optim_offload::transfer {

/// A thread that runs tasks in the order they were given: a simulated stream.
class Worker {
 public:
  Worker() : body_(std::make_unique<Body>()) {}
  ~Worker() {
    // A forked child has the lock and the queue as they were, but not the thread that would let go
    // of them.
    if (getpid() != owner_) static_cast<void>(body_.release());
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(std::function<void()> task) { body_->post(std::move(task)); }

  /// Waits until every task posted so far has run.
  void drain() { body_->drain(); }

 private:
  class Body {
   public:
    Body() : thread_([this] { run(); }) {}
    ~Body() {
      {
        const std::lock_guard lock(mutex_);
        stop_ = true;
      }
      changed_.notify_all();
      thread_.join();
    }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

    void post(std::function<void()> task) {
      {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
      }
      changed_.notify_all();
    }

    void drain() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
    }

   private:
    void run() {
      std::unique_lock lock(mutex_);
      while (true) {
        changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        const auto task = std::move(tasks_.front());
        tasks_.pop_front();
        busy_ = true;
        lock.unlock();
        task();
        lock.lock();
        busy_ = false;
        changed_.notify_all();
      }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool busy_ = false;
    bool stop_ = false;
    std::thread thread_;
  };

  std::unique_ptr<Body> body_;
  pid_t owner_ = getpid();
};

}  // namespace optim_offload::transfer
