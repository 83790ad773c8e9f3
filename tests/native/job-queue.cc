// Two accounts, foo and bar, both submit images to be converted to one pool of two workers. The workers' time is the
// accounts', which the marks tell by the hand-over of each job; one image takes visibly longer than the other.
//
// Prints the truth as JSON: bounds of the time of the work, by account and by image.

#include <nntrace.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

namespace {

struct Job {
    std::string account;
    std::string image;
    int milliseconds;
    uint64_t handle;
};

class Queue {
public:
    void push(Job job) {
        std::lock_guard<std::mutex> lock(mutex_);
        jobs_.push_back(job);
        changed_.notify_one();
    }

    // No more jobs come.
    void close() {
        std::lock_guard<std::mutex> lock(mutex_);
        is_closed_ = true;
        changed_.notify_all();
    }

    // False when there is none any more.
    bool pop(Job *job) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return is_closed_ || !jobs_.empty(); });
        if (jobs_.empty()) {
            return false;
        }
        *job = jobs_.front();
        jobs_.pop_front();
        return true;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    bool is_closed_ = false;
};

struct Truth {
    std::mutex mutex;
    std::map<std::string, bounds> by_account;
    std::map<std::string, bounds> by_image;
    std::map<std::string, int64_t> sections;
};

void submit(Queue &queue, const char *account, const char *image, int milliseconds, int count) {
    for (int number = 0; number < count; ++number) {
        NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "submit", nntrace_iter(static_cast<uint64_t>(number)),
                         nntrace_acct(account));
        const Job job = {account, image, milliseconds, nntrace_handle()};
        NNTRACE_SEND(job.handle);
        queue.push(job);
    }
}

void serve(Queue &queue, Truth &truth) {
    Job job;
    while (queue.pop(&job)) {
        const int64_t before = now_ns();
        int64_t begin, end;
        {
            NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "convert_image", nntrace_takes(job.handle),
                             nntrace_attr("img", job.image.c_str()));
            begin = now_ns();
            busy_ms(job.milliseconds);
            end = now_ns();
        }
        const int64_t behind = now_ns();
        std::lock_guard<std::mutex> lock(truth.mutex);
        add_section(&truth.by_account[job.account], before, begin, end, behind);
        add_section(&truth.by_image[job.image], before, begin, end, behind);
        truth.sections[job.account] += 1;
    }
}

void print(const char *name, const std::map<std::string, bounds> &values) {
    std::printf("\"%s\":{", name);
    size_t left = values.size();
    for (const auto &entry : values) {
        print_bounds(entry.first.c_str(), entry.second, --left == 0 ? "}," : ",");
    }
}

}  // namespace

int main() {
    go_first();
    Queue queue;
    Truth truth;
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 2; ++worker) {
        workers.emplace_back([&] { serve(queue, truth); });
    }
    std::thread foo([&] { submit(queue, "foo", "foo_image.jpg", 12, 10); });
    std::thread bar([&] { submit(queue, "bar", "bar_image.png", 4, 15); });
    foo.join();
    bar.join();
    queue.close();
    for (std::thread &worker : workers) {
        worker.join();
    }
    std::printf("{");
    print("accounts", truth.by_account);
    print("images", truth.by_image);
    std::printf("\"sections\":{\"foo\":%lld,\"bar\":%lld}}\n", static_cast<long long>(truth.sections["foo"]),
                static_cast<long long>(truth.sections["bar"]));
    return 0;
}
