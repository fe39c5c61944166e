#include "lib/health/disk_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "lib/health/guarded_call.h"

namespace mm::health {
namespace {

// What the child sends; plain bytes through a pipe.
struct Answer {
  int error = 0;
  struct statvfs room {};
};

int read_directory(const char* path) {
  DIR* directory = ::opendir(path);
  if (directory == nullptr) return errno;
  errno = 0;
  const int error = ::readdir(directory) == nullptr ? errno : 0;
  ::closedir(directory);
  return error;
}

int read_start(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  std::array<char, 4096> part{};
  const int error = ::read(fd, part.data(), part.size()) < 0 ? errno : 0;
  ::close(fd);
  return error;
}

std::string ask(const std::filesystem::path& path) {
  Answer answer;
  struct stat status {};
  if (::statvfs(path.c_str(), &answer.room) != 0 || ::stat(path.c_str(), &status) != 0) {
    answer.error = errno;
  } else {
    answer.error =
        S_ISDIR(status.st_mode) ? read_directory(path.c_str()) : read_start(path.c_str());
  }
  std::string bytes(sizeof(answer), '\0');
  std::memcpy(bytes.data(), &answer, sizeof(answer));
  return bytes;
}

void fill(const std::string& bytes, DiskSpace& space) {
  Answer answer;
  if (bytes.size() != sizeof(answer)) {
    space.problem = "the probing process died";
    return;
  }
  std::memcpy(&answer, bytes.data(), sizeof(answer));
  space.error = answer.error;
  if (answer.error != 0) {
    space.problem = std::generic_category().message(answer.error);
    return;
  }
  space.total_bytes = uint64_t{answer.room.f_blocks} * answer.room.f_frsize;
  space.free_bytes = uint64_t{answer.room.f_bavail} * answer.room.f_frsize;
  space.free_inodes = answer.room.f_favail;
  space.total_inodes = answer.room.f_files;
  space.read_only = (answer.room.f_flag & ST_RDONLY) != 0;
}

}  // namespace

std::vector<DiskSpace> probe_disks(const std::vector<std::filesystem::path>& paths,
                                   int deadline_ms) {
  std::vector<GuardedCall> calls;
  for (const auto& path : paths) calls.push_back(GuardedCall::start([&] { return ask(path); }));
  std::vector<DiskSpace> spaces(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    spaces[i].path = paths[i];
    const auto answer = calls[i].finish(deadline_ms);
    if (answer) {
      fill(*answer, spaces[i]);
    } else {
      spaces[i].hung = answer.failure().kind == "hung";
      spaces[i].problem = answer.failure().message;
    }
  }
  return spaces;
}

DiskSpace probe_disk(const std::filesystem::path& path, int deadline_ms) {
  return probe_disks({path}, deadline_ms).front();
}

}  // namespace mm::health
